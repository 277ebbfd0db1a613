#include "loader/core/source/local_store.h"
#include "loader/core/source/paths.h"
#include "loader/core/source/remote/remote_store.h"
#include "loader/core/store.h"

namespace fullbore::loader {

Result<std::shared_ptr<Store>> OpenStore(const std::string& path_or_url, const SourceOptions& options) {
  if (IsRemote(path_or_url)) return OpenRemoteStore(path_or_url, options);
  return std::shared_ptr<Store>(std::make_shared<LocalStore>());
}

}  // namespace fullbore::loader
