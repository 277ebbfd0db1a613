// Matrix products: mm, addmm, bmm, baddbmm, matmul, linear and their relatives.
#include <algorithm>

#include "explain/roofline/tensors.h"

namespace fullbore::roofline {
namespace {

// Where the factors stand among the arguments, and the tensor that is added to the product.
struct Places {
  size_t a, b;
  bool added_first;     // argument 0 is added
  bool weight_by_rows;  // b is (n, k), as aten::linear takes it
};

Places PlacesOf(std::string_view name) {
  if (name.starts_with("aten::linear")) return {0, 1, false, true};
  const bool added = name.starts_with("aten::addmm") || name.starts_with("aten::_addmm") ||
                     name.starts_with("aten::baddbmm") || name.starts_with("aten::addbmm") ||
                     name.starts_with("aten::addmv");
  return added ? Places{1, 2, true, false} : Places{0, 1, false, false};
}

double Size(const std::vector<int64_t>& dims, size_t from_last) {
  return from_last < dims.size() ? static_cast<double>(dims[dims.size() - 1 - from_last]) : 1;
}

// All but the last two dimensions.
double Batch(const std::vector<int64_t>& dims) {
  return dims.size() <= 2 ? 1 : Count({dims.begin(), dims.end() - 2});
}

bool Transposed(const OperatorInput& a) {
  const size_t n = a.strides.size();
  return n >= 2 && a.strides[n - 1] != 1 && a.strides[n - 2] == 1;
}

}  // namespace

void CountProduct(const OperatorShape& shape, std::string_view name, Work* work) {
  const Places places = PlacesOf(name);
  const OperatorInput& a = Input(shape, places.a);
  const OperatorInput& b = Input(shape, places.b);
  if (!a.tensor() || !b.tensor()) return;
  Product product;
  product.k = Size(a.dims, 0);
  product.m = a.dims.size() == 1 ? 1 : Size(a.dims, 1);
  product.a_transposed = Transposed(a);
  if (places.weight_by_rows) {  // the batch of a linear layer is rows of one product
    product.m = a.dims.size() == 1 ? 1 : Count({a.dims.begin(), a.dims.end() - 1});
    product.n = b.dims.size() == 1 ? 1 : Size(b.dims, 1);
    if (Size(b.dims, 0) != product.k) return;
  } else if (b.dims.size() == 1) {  // matrix times vector
    product.n = 1;
    product.batch = Batch(a.dims);
    if (Size(b.dims, 0) != product.k) return;
  } else {
    product.n = Size(b.dims, 0);
    product.batch = std::max(Batch(a.dims), Batch(b.dims));
    if (Size(b.dims, 1) != product.k) return;
  }
  const double results = product.batch * product.m * product.n;
  work->flops = 2 * results * product.k;
  ElementType result_type = a.type;
  if (a.type == ElementType::kInt8) result_type = ElementType::kInt32;       // _int_mm
  if (a.type == ElementType::kFloat8) result_type = ElementType::kBFloat16;  // _scaled_mm, as it is used
  ByteSum bytes;
  bytes.Read(a);
  bytes.Read(b);
  bytes.Add(name.starts_with("aten::addbmm") ? product.m * product.n : results, result_type);
  const bool bias = places.weight_by_rows && Input(shape, 2).tensor();
  if (places.added_first || bias) {
    bytes.Read(Input(shape, bias ? 2 : 0));
    *work->flops += results;
  }
  work->bytes = bytes.sum();
  work->type = a.type;
  work->matrix = true;
  work->elements = results;
  work->form = product;
}

// Mixture of experts in one operator, as vLLM and its relatives call them: (tokens, hidden), the weights of
// all experts for the first (gate and up) and the second product, and for each token its few experts.
void CountMoe(const OperatorShape& shape, Work* work) {
  const OperatorInput& hidden = Input(shape, 0);
  const OperatorInput& first = Input(shape, 1);
  const OperatorInput& second = Input(shape, 2);
  const OperatorInput& chosen = Input(shape, 3);
  if (hidden.dims.size() != 2 || first.dims.size() != 3 || second.dims.size() != 3 || chosen.dims.size() != 2)
    return;
  const double tokens = Count(hidden.dims), experts = static_cast<double>(first.dims[0]);
  const double rows = static_cast<double>(hidden.dims[0]) * static_cast<double>(chosen.dims[1]);
  const double first_weights = Count({first.dims[1], first.dims[2]});
  const double second_weights = Count({second.dims[1], second.dims[2]});
  work->flops = 2 * rows * (first_weights + second_weights);
  const double used = std::min(experts, rows);  // the tokens may be spread over that many
  ByteSum bytes;
  bytes.Add(2 * tokens, hidden.type);
  bytes.Add(used * first_weights, first.type);
  bytes.Add(used * second_weights, second.type);
  bytes.Read(chosen);
  work->bytes = bytes.sum();
  work->type = hidden.type;
  work->matrix = true;
  work->elements = tokens;
}

}  // namespace fullbore::roofline
