#include "fleet/sql/libpq.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace fullbore::fleet::sql {

namespace {

constexpr char kLibrary[] = "libpq.so.5";

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool FindAll(void* library, Libpq& pq) {
  return Find(library, "PQconnectdbParams", pq.connect) && Find(library, "PQstatus", pq.status) &&
         Find(library, "PQerrorMessage", pq.message) && Find(library, "PQfinish", pq.finish) &&
         Find(library, "PQsetNoticeProcessor", pq.set_notices) && Find(library, "PQexec", pq.execute) &&
         Find(library, "PQexecParams", pq.execute_with) && Find(library, "PQsendQueryParams", pq.send_with) &&
         Find(library, "PQsetSingleRowMode", pq.row_by_row) && Find(library, "PQgetResult", pq.next) &&
         Find(library, "PQresultStatus", pq.status_of) && Find(library, "PQresultErrorField", pq.field_of) &&
         Find(library, "PQntuples", pq.rows_of) && Find(library, "PQgetvalue", pq.value) &&
         Find(library, "PQgetlength", pq.length) && Find(library, "PQcmdTuples", pq.changed) &&
         Find(library, "PQclear", pq.clear);
}

Result<Libpq> Load() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  Libpq pq;
  if (library != nullptr && FindAll(library, pq)) return pq;
  const char* const reason = dlerror();
  return Error{ErrorCode::kNotFound,
               fmt::format("cannot load {}, which speaks to PostgreSQL: {}", kLibrary,
                           reason != nullptr ? reason : "it is too old"),
               "apt install libpq5, or give a file instead"};
}

}  // namespace

Result<const Libpq*> Libpq::Open() {
  static const Result<Libpq> loaded = Load();
  if (!loaded) return loaded.error();
  return &*loaded;
}

}  // namespace fullbore::fleet::sql
