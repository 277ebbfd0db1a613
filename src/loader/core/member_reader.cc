#include "loader/core/member_reader.h"

namespace fullbore::loader {

void MemberReader::Type(const char* name, DType& value) {
  Take(name, [&](const Json& found) {
    const auto type = DTypeNamed(found.get<std::string>());
    if (!type)
      throw BadMember{fmt::format("{}{} cannot be {}", where_, name, found.dump()),
                      "give one such as float32"};
    value = *type;
  });
}

void MemberReader::RejectRest() const {
  if (object_.empty()) return;
  throw BadMember{fmt::format("there is no option '{}{}'", where_, object_.begin().key()), ""};
}

}  // namespace fullbore::loader
