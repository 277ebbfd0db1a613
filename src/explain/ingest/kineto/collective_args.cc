#include "explain/ingest/kineto/collective_args.h"

#include <algorithm>

#include "explain/ingest/kineto/event.h"

namespace fullbore::ingest::kineto {

namespace {

// Bytes per element of the types that collectives carry, 0 for an unknown name.
int64_t ElementBytes(std::string_view type) {
  struct Type {
    std::string_view name;
    int64_t bytes;
  };
  constexpr Type kTypes[] = {{"Double", 8},        {"double", 8},      {"Long", 8},      {"long int", 8},
                             {"long", 8},          {"Float", 4},       {"float", 4},     {"Int", 4},
                             {"int", 4},           {"Half", 2},        {"c10::Half", 2}, {"BFloat16", 2},
                             {"c10::BFloat16", 2}, {"Short", 2},       {"Byte", 1},      {"unsigned char", 1},
                             {"Char", 1},          {"signed char", 1}, {"Bool", 1},      {"bool", 1},
                             {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1}};
  for (const auto& known : kTypes) {
    if (known.name == type) return known.bytes;
  }
  return 0;
}

std::string_view FirstString(std::string_view list) {  // of ["float", ""]
  const size_t begin = list.find('"');
  if (begin == std::string_view::npos) return {};
  const size_t end = list.find('"', begin + 1);
  return end == std::string_view::npos ? std::string_view{} : list.substr(begin + 1, end - begin - 1);
}

}  // namespace

void CollectiveArgs::Take(std::string_view key, std::string_view value) {
  if (key == "Collective name")
    name = value;
  else if (key == "dtype")
    type = value;
  else if (key == "In msg nelems")
    in = Integer(value).value_or(-1);
  else if (key == "Out msg nelems")
    out = Integer(value).value_or(-1);
  else if (key == "Src Rank")
    source = Integer(value).value_or(-1);
  else if (key == "Dst Rank")
    destination = Integer(value).value_or(-1);
  else if (key == "Group size")
    group_size = Integer(value).value_or(-1);
  else if (key == "Process Group Name")
    group = value;
  else if (key == "Input Dims")
    dims = value;
  else if (key == "Input type")
    dim_type = FirstString(value);
}

int32_t CollectiveArgs::peer(std::string_view kind) const {
  const int64_t rank = kind.find("send") != std::string_view::npos   ? destination
                       : kind.find("recv") != std::string_view::npos ? source
                                                                     : -1;
  return rank < 0 || rank > (1 << 30) ? -1 : static_cast<int32_t>(rank);
}

int64_t CollectiveArgs::bytes() const {
  const int64_t elements = std::max(in, out);
  if (elements >= 0 && ElementBytes(type) > 0) return elements * ElementBytes(type);
  const int64_t listed = dims.empty() ? -1 : FirstElements(dims);
  return listed >= 0 && ElementBytes(dim_type) > 0 ? listed * ElementBytes(dim_type) : -1;
}

}  // namespace fullbore::ingest::kineto
