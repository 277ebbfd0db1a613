#include "explain/roofline/chains.h"

#include <algorithm>
#include <map>

namespace fullbore::roofline {

using record::RooflineReason;
using timeline::OperatorKind;

namespace {

constexpr size_t kMinLinks = 3;   // shorter ones are hardly worth the trouble
constexpr size_t kMaxLinks = 64;  // longer ones are cut
constexpr double kFewSums = 16;   // a sixteenth of the elements or less: sums over rows
constexpr size_t kReach = 6;      // calls between the softmax and the products of attention
// Between a large kernel and the small ones beside it.
constexpr int64_t kSmallPart = 10;
constexpr size_t kMaxSmall = 12;  // more of them are a program part of their own: an optimizer, a loss

using Links = std::vector<ChainLink>;

// "aten::mul_" is "mul".
std::string_view PlainName(std::string_view name) {
  if (name.starts_with("aten::")) name.remove_prefix(6);
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

// One step of arithmetic, as models write formulas out; not what a library does in one kernel anyway (dropout,
// activations, normalisations), nor copies and casts. What works in place is an optimizer more often than a
// formula, and compiling the model does not reach that.
bool IsElementary(std::string_view name) {
  static constexpr std::string_view kElementary[] = {
      "abs",     "add",     "clamp", "cos",    "div", "erf",        "exp",   "log",
      "maximum", "minimum", "mul",   "neg",    "pow", "reciprocal", "rsqrt", "rsub",
      "sigmoid", "sin",     "sqrt",  "square", "sub", "tanh",       "where"};
  return !name.ends_with('_') && std::ranges::find(kElementary, PlainName(name)) != std::end(kElementary);
}

class Finder {
 public:
  Finder(const std::vector<ChainRow>& rows, std::optional<double> bytes_per_s)
      : rows_(rows), bytes_per_s_(bytes_per_s) {
    chains_.rows.resize(rows.size());
  }

  void Look(const Links& links) {
    FindAttention(links);
    for (size_t begin = 0; begin < links.size();) {
      size_t end = begin;
      while (end < links.size() && end - begin < kMaxLinks && CanFuse(links[end])) ++end;
      if (end - begin >= kMinLinks) TakeRun(links, begin, end);
      begin = std::max(end, begin + 1);
    }
  }

  Chains Finish() {
    for (auto& [key, chain] : by_rows_) chains_.found.push_back(std::move(chain));
    std::stable_sort(chains_.found.begin(), chains_.found.end(),
                     [](const auto& a, const auto& b) { return a.device_ns > b.device_ns; });
    return std::move(chains_);
  }

 private:
  struct Key {
    RooflineReason reason;
    std::vector<uint32_t> rows;
    auto operator<=>(const Key&) const = default;
  };

  const ChainRow& Row(const ChainLink& link) const { return rows_[link.row]; }

  // What a compiler would write into one kernel.
  bool CanFuse(const ChainLink& link) const {
    if (link.row == kNoRow || !Row(link).work.bytes) return false;
    switch (Row(link).kind) {
      case OperatorKind::kElementwise:
      case OperatorKind::kCopy:
      case OperatorKind::kConcatenation:
      case OperatorKind::kReduction:
      case OperatorKind::kSoftmax:
      case OperatorKind::kNormalisation:
        return true;
      default:
        return false;
    }
  }

  bool Named(const ChainLink& link, std::initializer_list<std::string_view> names) const {
    const std::string_view name = PlainName(Row(link).name);
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  // A mean or variance, a root of its few results, and a product or quotient with the whole tensor again. The
  // places of the first and the last, or nothing.
  std::optional<std::pair<size_t, size_t>> Normalisation(const Links& links, size_t begin, size_t end) const {
    for (size_t root = begin + 1; root + 1 < end; ++root) {
      if (!Named(links[root], {"rsqrt", "sqrt"})) continue;
      const double few = Row(links[root]).work.elements;
      for (size_t mean = root; mean-- > begin;) {
        if (!Named(links[mean], {"mean", "var", "sum", "var_mean", "std"})) continue;
        const double whole = Row(links[mean]).work.elements;
        if (whole < 2 * few) break;
        for (size_t scale = root + 1; scale < std::min(end, root + kReach); ++scale) {
          if (!Named(links[scale], {"mul", "div"}) || Row(links[scale]).work.elements != whole) continue;
          // Before the mean a square or a difference and a cast, after the product a cast and the weight.
          size_t first = mean, last = scale;
          while (first > begin && mean - first < 2 && Row(links[first - 1]).work.elements == whole &&
                 Named(links[first - 1], {"pow", "square", "mul", "sub", "copy"}))
            --first;
          while (last + 1 < end && last - scale < 3 && Row(links[last + 1]).work.elements == whole &&
                 Named(links[last + 1], {"mul", "copy", "add"}))
            ++last;
          return std::pair(first, last);
        }
        break;
      }
    }
    return std::nullopt;
  }

  void TakeRun(const Links& links, size_t begin, size_t end) {
    if (TakeSmall(links, begin, end)) return;
    for (size_t at = begin; at < end;) {
      const auto found = Normalisation(links, at, end);
      TakeElementwise(links, at, found ? found->first : end);
      if (!found) return;
      Take(links, found->first, found->second + 1, RooflineReason::kNormalisationUnfused);
      at = found->second + 1;
    }
  }

  // Stretches over tensors of one size; an operator on half of them or on the sums of rows may be between.
  void TakeElementwise(const Links& links, size_t begin, size_t end) {
    for (size_t at = begin; at < end;) {
      const double size = Row(links[at]).work.elements;
      size_t until = at, same = 0;
      bool different = false;  // one operator again and again is a benchmark, and no chain
      for (; until < end; ++until) {
        const double elements = Row(links[until]).work.elements;
        if (elements != size && 2 * elements != size && kFewSums * elements > size) break;
        same += elements == size ? 1 : 0;
        different = different || links[until].row != links[at].row;
      }
      if (different && same >= kMinLinks && 2 * same >= until - at)
        Take(links, at, until, RooflineReason::kElementwiseChain);
      at = std::max(until, at + 1);
    }
  }

  // Kernels that are a tenth of the one before or after them, and that spend more time waiting than running.
  bool TakeSmall(const Links& links, size_t begin, size_t end) {
    if (end - begin > kMaxSmall) return false;
    const auto large = [&](size_t i) {
      return links[i].row != kNoRow && timeline::IsMatrixWork(Row(links[i]).kind) ? links[i].device_ns : 0;
    };
    const int64_t before = begin > 0 ? large(begin - 1) : 0;
    const int64_t after = end < links.size() ? large(end) : 0;
    const int64_t largest = std::max(before, after);
    if (largest == 0) return false;
    int64_t busy = 0;
    for (size_t i = begin; i < end; ++i) {
      if (links[i].device_ns * kSmallPart > largest) return false;
      busy += links[i].device_ns;
    }
    if (links[end - 1].end_ns - links[begin].begin_ns < 2 * busy) return false;
    const size_t beside = before >= after ? begin - 1 : end;
    chains_.rows[links[beside].row].small_ns += links[beside].device_ns;
    Take(links, begin, end, RooflineReason::kSmallKernels);
    return true;
  }

  void Take(const Links& links, size_t begin, size_t end, RooflineReason reason) {
    Key key{reason, {}};
    int64_t device_ns = 0;
    double fused = 0;  // bytes
    for (size_t i = begin; i < end; ++i) {
      const ChainRow& row = Row(links[i]);
      key.rows.push_back(links[i].row);
      device_ns += links[i].device_ns;
      fused += *row.work.bytes;
      // What it hands on need neither be written nor read.
      if (i + 1 < end) fused -= 2 * ResultBytes(row.work);
      Surroundings& around = chains_.rows[links[i].row];
      (reason == RooflineReason::kNormalisationUnfused ? around.normalisation_ns
       : reason == RooflineReason::kSmallKernels       ? around.small_ns
                                                       : around.chain_ns) += links[i].device_ns;
      around.chain_length = std::max(around.chain_length, static_cast<int64_t>(end - begin));
    }
    const auto [place, added] = by_rows_.try_emplace(key);
    record::RooflineChain& chain = place->second;
    if (added) {
      chain.reason = reason;
      double most = -1;
      for (const uint32_t row : key.rows) {
        chain.operators.emplace_back(rows_[row].name);
        chain.elementary += IsElementary(rows_[row].name) ? 1 : 0;
        if (rows_[row].work.elements <= most) continue;
        most = rows_[row].work.elements;
        chain.shape = rows_[row].shape;
      }
    }
    ++chain.count;
    chain.device_ns += device_ns;
    if (!bytes_per_s_) return;
    // At least its first input is read and its last result written.
    const double least = *Row(links[begin]).work.bytes / 2 + ResultBytes(Row(links[end - 1]).work);
    chain.fused_ns = chain.fused_ns.value_or(0) + std::max(fused, least) / *bytes_per_s_ * 1e9;
  }

  static double ResultBytes(const Work& work) {
    const auto bytes = static_cast<double>(timeline::ElementBytes(work.type));
    return std::min(work.elements * bytes, work.bytes.value_or(0) / 2);
  }

  // A batch of products, a softmax over its results, and a product of them again.
  void FindAttention(const Links& links) {
    for (size_t i = 0; i < links.size(); ++i) {
      if (links[i].row == kNoRow || Row(links[i]).kind != OperatorKind::kSoftmax) continue;
      const double scores = Row(links[i]).work.elements;
      const auto product = [&](size_t k) {
        return links[k].row == kNoRow ? nullptr : std::get_if<Product>(&Row(links[k]).work.form);
      };
      size_t first = i, last = i;
      for (size_t k = i; k-- > 0 && i - k <= kReach && first == i;) {
        const Product* p = product(k);
        if (p != nullptr && p->batch > 1 && p->batch * p->m * p->n == scores) first = k;
      }
      for (size_t k = i + 1; k < links.size() && k - i <= kReach && last == i; ++k) {
        const Product* p = product(k);
        if (p != nullptr && p->batch > 1 && p->batch * p->m * p->k == scores) last = k;
      }
      if (first == i || last == i) continue;
      for (size_t k = first; k <= last; ++k) {
        if (links[k].row != kNoRow) chains_.rows[links[k].row].attention_ns += links[k].device_ns;
      }
    }
  }

  const std::vector<ChainRow>& rows_;
  const std::optional<double> bytes_per_s_;
  std::map<Key, record::RooflineChain> by_rows_;
  Chains chains_;
};

}  // namespace

Chains FindChains(const std::vector<ChainRow>& rows, const std::vector<std::vector<ChainLink>>& streams,
                  std::optional<double> bytes_per_s) {
  Finder finder(rows, bytes_per_s);
  for (const Links& links : streams) finder.Look(links);
  return finder.Finish();
}

}  // namespace fullbore::roofline
