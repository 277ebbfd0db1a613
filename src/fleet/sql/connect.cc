#include "fleet/sql/sql.h"

namespace fullbore::fleet::sql {

bool IsServer(std::string_view target) {
  return target.starts_with("postgresql://") || target.starts_with("postgres://");
}

Result<std::unique_ptr<Connection>> Connect(const std::string& target, Access access) {
  return IsServer(target) ? ConnectServer(target, access) : ConnectFile(target, access);
}

}  // namespace fullbore::fleet::sql
