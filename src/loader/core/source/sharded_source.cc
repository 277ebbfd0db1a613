#include "loader/core/source/sharded_source.h"

#include <fmt/format.h>

#include <algorithm>

namespace fullbore::loader {

std::vector<uint64_t> ShardedSource::blocks() const {
  std::vector<uint64_t> samples;
  for (size_t file = 0; file + 1 < first_of_.size(); ++file) {
    samples.push_back(first_of_[file + 1] - first_of_[file]);
  }
  return samples;
}

ShardedSource::Place ShardedSource::Find(uint64_t id) const {
  const auto behind = std::upper_bound(first_of_.begin(), first_of_.end(), id);
  const auto file = static_cast<size_t>(behind - first_of_.begin() - 1);
  return {file, id - first_of_[file]};
}

Error NoSamples(const Opening& opening, ShardedSource& source, const char* called, const char* hint) {
  Error error{ErrorCode::kCorrupt,
              fmt::format("no {} in '{}'{}", called, opening.paths[0],
                          opening.paths.size() > 1 ? " and the files after it" : ""),
              hint};
  const auto messages = source.messages.Take();
  if (!messages.empty()) error.text += ": " + messages[0].text;
  return error;
}

}  // namespace fullbore::loader
