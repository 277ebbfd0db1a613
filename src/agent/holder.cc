#include "agent/holder.h"

#include <algorithm>
#include <initializer_list>

#include "base/text.h"

namespace fullbore::agent {

namespace {

constexpr std::string_view kDecimal = "0123456789", kHex = "0123456789abcdef";
constexpr std::string_view kCrockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr size_t kShownIdDigits = 12;  // as docker and crictl show it
constexpr size_t kContainerIdDigits = 64;

bool AllOf(std::string_view text, std::string_view digits) {
  return !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
}

// What stands between the two; nothing where the text has another form.
std::optional<std::string_view> Between(std::string_view text, std::string_view begin, std::string_view end) {
  if (text.size() < begin.size() + end.size() || !text.starts_with(begin) || !text.ends_with(end))
    return std::nullopt;
  return text.substr(begin.size(), text.size() - begin.size() - end.size());
}

// Of a static pod, its uid is a hash without dashes.
std::string PodUid(std::string_view text) {
  std::string uid(text);
  std::ranges::replace(uid, '_', '-');  // systemd's names have no dashes inside
  std::string digits = uid;
  std::erase(digits, '-');
  const bool dashed = uid.size() == 36 && uid[8] == '-' && uid[13] == '-' && uid[18] == '-' && uid[23] == '-';
  return digits.size() == 32 && AllOf(digits, kHex) && (dashed || uid.size() == 32) ? uid : "";
}

std::string PodIn(std::string_view part) {
  if (const auto slice = Between(part, "", ".slice"); slice && slice->find("kubepods") != std::string::npos) {
    const size_t at = slice->rfind("-pod");
    return at == std::string_view::npos ? "" : PodUid(slice->substr(at + 4));
  }
  return part.starts_with("pod") ? PodUid(part.substr(3)) : "";
}

// "libpod-conmon-ID.scope" is the watcher of a container, not the container.
std::string ContainerIn(std::string_view part, bool in_engine) {
  const auto shown = [](std::string_view id) { return std::string(id.substr(0, kShownIdDigits)); };
  for (const std::string_view engine : {"docker-", "cri-containerd-", "crio-", "libpod-", "nerdctl-"}) {
    const auto id = Between(part, engine, ".scope");
    if (id && id->size() == kContainerIdDigits && AllOf(*id, kHex)) return shown(*id);
  }
  return in_engine && part.size() == kContainerIdDigits && AllOf(part, kHex) ? shown(part) : "";
}

bool IsOfSlurm(std::string_view part) {
  return part == "slurm" || part.starts_with("slurm_") || part.ends_with("slurmstepd.scope");
}

std::optional<uint32_t> Uid(std::optional<std::string_view> digits) {
  const auto number = digits && AllOf(*digits, kDecimal) ? ParseInt(*digits) : std::nullopt;
  return number && *number <= UINT32_MAX ? std::optional(static_cast<uint32_t>(*number)) : std::nullopt;
}

// Goes through a path from its root: what a part means may depend on those before it.
class Reading {
 public:
  void Take(std::string_view part) {
    if (!read_.of_user && TakeSlurm(part)) return;
    Holder& holder = read_.holder;
    if (const std::string pod = PodIn(part); !read_.of_user && !pod.empty() && holder.pod_uid.empty()) {
      holder.pod_uid = pod;
    } else if (const std::string id = ContainerIn(part, in_engine_);
               !id.empty() && holder.container.empty()) {
      holder.container = id;
    } else if (const auto uid = Uid(Between(part, "user-", ".slice")); uid && !holder.uid) {
      holder.uid = uid;
      read_.of_user = true;
    } else if (part.ends_with(".service") && holder.unit.empty() && !holder.uid) {
      holder.unit = part;
    }
    in_engine_ = part == "docker" || !holder.pod_uid.empty();
  }

  Membership End(bool removed) {
    Holder& holder = read_.holder;
    holder.kind = !holder.job.empty()         ? Kind::kJob
                  : !holder.pod_uid.empty()   ? Kind::kPod
                  : !holder.container.empty() ? Kind::kContainer
                  : holder.uid                ? Kind::kSession
                  : !holder.unit.empty()      ? Kind::kService
                                              : Kind::kNone;
    if (holder.kind != Kind::kService) holder.unit.clear();
    if (holder.kind != Kind::kSession) holder.uid.reset();
    read_.removed = removed;
    return read_;
  }

 private:
  bool TakeSlurm(std::string_view part) {
    if (read_.holder.job.empty()) {
      const auto number = Between(part, "job_", "");
      const bool named = (number && AllOf(*number, kDecimal)) || IsSluid(part);
      if (in_slurm_ && named) read_.holder.job = number ? *number : part;
      in_slurm_ |= IsOfSlurm(part);
      read_.unified |= part.ends_with("slurmstepd.scope");
      return named;
    }
    if (read_.step.empty()) {
      if (const auto step = Between(part, "step_", "")) read_.step = *step;
    } else {
      read_.step_daemon |= part == "slurm";
    }
    return true;
  }

  Membership read_;
  bool in_slurm_ = false, in_engine_ = false;
};

Membership MembershipOfPath(std::string_view path) {
  constexpr std::string_view kRemoved = " (deleted)";
  const bool removed = path.ends_with(kRemoved);
  if (removed) path.remove_suffix(kRemoved.size());
  Reading reading;
  for (const std::string_view part : Split(path, '/')) reading.Take(part);
  return reading.End(removed);
}

}  // namespace

const char* Name(Kind kind) {
  switch (kind) {
    case Kind::kNone:
      return "none";
    case Kind::kService:
      return "service";
    case Kind::kSession:
      return "session";
    case Kind::kContainer:
      return "container";
    case Kind::kPod:
      return "pod";
    case Kind::kJob:
      return "job";
  }
  return "none";
}

Membership MembershipOf(std::string_view cgroup_text) {
  Membership best;
  for (const std::string_view line : Split(cgroup_text, '\n')) {  // "4:memory:/a/b", "0::/a/b"
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    Membership here = MembershipOfPath(line.substr(second + 1));
    const bool says_more = here.holder.kind > best.holder.kind ||
                           (here.holder.kind == best.holder.kind && here.step.size() > best.step.size());
    if (says_more) best = std::move(here);
  }
  return best;
}

bool IsSluid(std::string_view text) {
  return text.size() == 14 && text[0] == 's' && AllOf(text.substr(1), kCrockford);
}

std::string JobInTitle(std::string_view title) {
  const auto rest = Between(title, "slurmstepd: [", "");
  if (!rest) return "";
  const std::string_view number = rest->substr(0, rest->find('.'));
  return number.size() < rest->size() && AllOf(number, kDecimal) ? std::string(number) : "";
}

}  // namespace fullbore::agent
