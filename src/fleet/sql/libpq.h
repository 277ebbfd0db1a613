// libpq, opened at run time: who keeps the fleet in a file needs none.
#pragma once

#include <postgresql/libpq-fe.h>

#include "base/result.h"

namespace fullbore::fleet::sql {

struct Libpq {
  decltype(&PQconnectdbParams) connect = nullptr;
  decltype(&PQstatus) status = nullptr;
  decltype(&PQerrorMessage) message = nullptr;
  decltype(&PQfinish) finish = nullptr;
  decltype(&PQsetNoticeProcessor) set_notices = nullptr;
  decltype(&PQexec) execute = nullptr;
  decltype(&PQexecParams) execute_with = nullptr;
  decltype(&PQsendQueryParams) send_with = nullptr;
  decltype(&PQsetSingleRowMode) row_by_row = nullptr;
  decltype(&PQgetResult) next = nullptr;
  decltype(&PQresultStatus) status_of = nullptr;
  decltype(&PQresultErrorField) field_of = nullptr;
  decltype(&PQntuples) rows_of = nullptr;
  decltype(&PQgetvalue) value = nullptr;
  decltype(&PQgetlength) length = nullptr;
  decltype(&PQcmdTuples) changed = nullptr;
  decltype(&PQclear) clear = nullptr;

  // Opened once, and never closed.
  static Result<const Libpq*> Open();
};

}  // namespace fullbore::fleet::sql
