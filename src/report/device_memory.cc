#include "report/device_memory.h"

#include <fmt/format.h>

#include "base/text.h"

namespace fullbore::report {

using diagnose::MemoryPart;
using diagnose::MemoryWhatIf;

namespace {

std::string Listed(const std::map<std::string, double>& parts) {
  std::string text;
  for (const auto& [name, bytes] : parts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, FormatBytes(bytes));
  return text;
}

}  // namespace

std::map<std::string, double> MemoryShares(const diagnose::MemoryBudget& budget) {
  std::map<std::string, double> shares;
  for (const MemoryPart& part : budget.parts) shares[part.name] = part.bytes / budget.total;
  return shares;
}

std::string MemoryTitle(const diagnose::Diagnosis& diagnosis) {
  const diagnose::MemoryBudget& budget = *diagnosis.memory;
  double used = 0;
  for (const MemoryPart& part : budget.parts) used += part.name == "free" ? 0 : part.bytes;
  const std::string whose =
      diagnosis.ranks.size() > 1 ? fmt::format(", rank {}, whose device is fullest", budget.rank) : "";
  return fmt::format("{} of {}{}", FormatBytes(used), FormatBytes(budget.total), whose);
}

std::string MemoryPartText(const MemoryPart& part) {
  std::string text = FormatBytes(part.bytes);
  if (part.of.size() > 1 || (part.of.size() == 1 && part.types.size() < 2))
    text += fmt::format(" ({})", Listed(part.of));
  if (part.types.size() > 1) text += fmt::format(" ({})", Listed(part.types));
  return text;
}

std::string_view FitText(const MemoryWhatIf& answer) {
  if (answer.high <= answer.total) return "fits";
  return answer.low > answer.total ? "does not fit" : "may not fit";
}

std::string MemoryWhatIfText(const MemoryWhatIf& answer) {
  if (!answer.missing.empty()) return fmt::format("what if {}: not known: {}", answer.change, answer.missing);
  std::string text = fmt::format("what if {}: {} take {} ({} to {}) of the device's {}, which {}; {} took {}",
                                 answer.change, answer.batch, FormatBytes(answer.expected),
                                 FormatBytes(answer.low), FormatBytes(answer.high), FormatBytes(answer.total),
                                 FitText(answer), answer.seen, FormatBytes(answer.now));
  if (!answer.assumes.empty()) return text + ". " + fmt::format("It is a guess: {}", answer.assumes);
  return text + fmt::format(". By a line through the peaks of batches of {} sizes", answer.sizes);
}

}  // namespace fullbore::report
