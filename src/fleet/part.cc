#include "fleet/part.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace fullbore::fleet {

namespace {

struct Row {
  Kind kind;
  const char *name, *for_people;
};

constexpr std::array kRows = {
    Row{Kind::kWork, "work", "work"},
    Row{Kind::kPadding, "padding", "padding"},
    Row{Kind::kRecomputation, "recomputation", "recomputation"},
    Row{Kind::kSlowKernels, "slow kernels", "kernels below their limit"},
    Row{Kind::kWaste, "waste", "wasted, waiting"},
    Row{Kind::kCheckpoint, "checkpoint", "checkpoints"},
    Row{Kind::kValidation, "validation", "validation"},
    Row{Kind::kLost, "lost", "lost steps"},
    Row{Kind::kStart, "start", "start"},
    Row{Kind::kCompile, "compile", "compilation"},
    Row{Kind::kWarmUp, "warm-up", "warm-up"},
    Row{Kind::kEnd, "end", "after the last step"},
    Row{Kind::kNotJudged, "not judged", "not judged"},
    Row{Kind::kExempt, "exempt", "exempt"},
    Row{Kind::kBetween, "between", "between its runs"},
};

constexpr auto kKinds = [] {
  std::array<Kind, kRows.size()> kinds{};
  for (size_t i = 0; i < kRows.size(); ++i) kinds[i] = kRows[i].kind;
  return kinds;
}();

const Row& RowOf(Kind kind) { return kRows[static_cast<size_t>(kind)]; }

// Its own among the parts, of nothing at first.
template <typename AnyPart>
AnyPart& PlaceOf(const AnyPart& part, std::vector<AnyPart>& parts) {
  const auto key = [](const AnyPart& each) { return std::tie(each.kind, each.cause); };
  const auto at = std::ranges::lower_bound(parts, key(part), {}, key);
  if (at != parts.end() && key(*at) == key(part)) return *at;
  return *parts.insert(at, AnyPart{part.kind, part.cause, 0});
}

}  // namespace

std::span<const Kind> AllKinds() { return kKinds; }

const char* Name(Kind kind) { return RowOf(kind).name; }

Kind KindNamed(std::string_view name) {
  const auto row =
      std::ranges::find(kRows, name, [](const Row& each) { return std::string_view(each.name); });
  return row == kRows.end() ? Kind::kNotJudged : row->kind;
}

const char* NameForPeople(Kind kind) { return RowOf(kind).for_people; }

void AddUp(std::vector<Part>& parts, const Part& part) {
  int64_t& sum_ns = PlaceOf(part, parts).device_ns;
  if (__builtin_add_overflow(sum_ns, part.device_ns, &sum_ns)) sum_ns = INT64_MAX;
}

void AddUp(std::vector<PartTotal>& parts, const PartTotal& part) {
  PartTotal& sum = PlaceOf(part, parts);
  sum.device_ns += part.device_ns;
  sum.cost += part.cost;
}

}  // namespace fullbore::fleet
