#include "cli/server_token.h"

#include <fmt/format.h>

#include "serve/access.h"

namespace fullbore::cli {

Result<std::optional<std::string>> TokenFor(const std::string& listen, const std::string& file,
                                            const std::string& instead) {
  if (file.empty()) {
    if (serve::IsLoopback(listen)) return std::optional<std::string>();
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("'{}' can be reached from other machines, and there is no token", listen),
                 "--token-file FILE with a secret of 16 characters or more; or " + instead};
  }
  auto token = serve::ReadToken(file);
  if (!token) return token.error();
  return std::optional(std::move(*token));
}

}  // namespace fullbore::cli
