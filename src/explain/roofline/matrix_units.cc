#include "explain/roofline/matrix_units.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "explain/roofline/devices.h"

namespace fullbore::roofline {
namespace {

using record::MatrixUnits;

struct Family {
  std::string_view begins;
  MatrixUnits units;
};

// The begin of a name without its maker; the first that fits. What follows it must not go on with a digit, so that
// "a10" is not "a100"; where a number is meant to go on, the entry ends in '#'.
// Sources: NVIDIA's table of compute capabilities (developer.nvidia.com/cuda-gpus) and architecture white papers:
// tensor cores from 7.0 on, without those of the GTX 16 and T400 to T2000 (7.5), bfloat16 from 8.0 on. AMD: matrix
// cores from CDNA (MI100) and RDNA 3 on. Intel: XMX in the Data Center GPU Max and Flex, and in Arc.
constexpr Family kFamilies[] = {
    // Kepler, Maxwell and Pascal, and what Turing sells without tensor cores.
    {"geforce gtx", MatrixUnits::kNone},
    {"geforce gt ", MatrixUnits::kNone},
    {"geforce mx", MatrixUnits::kNone},
    {"gtx", MatrixUnits::kNone},
    {"quadro rtx", MatrixUnits::kFloat16},
    {"quadro gv100", MatrixUnits::kFloat16},
    {"quadro", MatrixUnits::kNone},
    {"titan rtx", MatrixUnits::kFloat16},
    {"titan v", MatrixUnits::kFloat16},
    {"titan", MatrixUnits::kNone},
    {"p100", MatrixUnits::kNone},
    {"p40", MatrixUnits::kNone},
    {"p4", MatrixUnits::kNone},
    {"p6", MatrixUnits::kNone},
    {"k80", MatrixUnits::kNone},
    {"k40#", MatrixUnits::kNone},
    {"k20#", MatrixUnits::kNone},
    {"m60", MatrixUnits::kNone},
    {"m40", MatrixUnits::kNone},
    {"m10", MatrixUnits::kNone},
    {"m4", MatrixUnits::kNone},
    {"t400", MatrixUnits::kNone},
    {"t500", MatrixUnits::kNone},
    {"t600", MatrixUnits::kNone},
    {"t1000", MatrixUnits::kNone},
    {"t1200", MatrixUnits::kNone},
    {"t2000", MatrixUnits::kNone},
    // Volta and Turing.
    {"v100", MatrixUnits::kFloat16},
    {"t4", MatrixUnits::kFloat16},
    {"geforce rtx 20#", MatrixUnits::kFloat16},
    {"rtx 20#", MatrixUnits::kFloat16},
    {"rtx 2000 ada", MatrixUnits::kBFloat16},
    // Ampere and later.
    {"geforce rtx", MatrixUnits::kBFloat16},
    {"rtx", MatrixUnits::kBFloat16},
    {"a100", MatrixUnits::kBFloat16},
    {"a800", MatrixUnits::kBFloat16},
    {"a40", MatrixUnits::kBFloat16},
    {"a30", MatrixUnits::kBFloat16},
    {"a16", MatrixUnits::kBFloat16},
    {"a10", MatrixUnits::kBFloat16},
    {"a2", MatrixUnits::kBFloat16},
    {"l4#", MatrixUnits::kBFloat16},
    {"l2#", MatrixUnits::kBFloat16},
    {"h100", MatrixUnits::kBFloat16},
    {"h200", MatrixUnits::kBFloat16},
    {"h800", MatrixUnits::kBFloat16},
    {"h20", MatrixUnits::kBFloat16},
    {"gh200", MatrixUnits::kBFloat16},
    {"b100", MatrixUnits::kBFloat16},
    {"b200", MatrixUnits::kBFloat16},
    {"b300", MatrixUnits::kBFloat16},
    {"gb200", MatrixUnits::kBFloat16},
    {"gb300", MatrixUnits::kBFloat16},
    {"gb10", MatrixUnits::kBFloat16},
    {"orin", MatrixUnits::kBFloat16},
    {"thor", MatrixUnits::kBFloat16},
    // AMD.
    {"mi25", MatrixUnits::kNone},
    {"mi50", MatrixUnits::kNone},
    {"mi60", MatrixUnits::kNone},
    {"mi1#", MatrixUnits::kBFloat16},
    {"mi2#", MatrixUnits::kBFloat16},
    {"mi3#", MatrixUnits::kBFloat16},
    {"radeon vii", MatrixUnits::kNone},
    {"radeon rx 5#", MatrixUnits::kNone},
    {"radeon rx 6#", MatrixUnits::kNone},
    {"radeon rx 7#", MatrixUnits::kBFloat16},
    {"radeon rx 9#", MatrixUnits::kBFloat16},
    {"radeon pro w6#", MatrixUnits::kNone},
    {"radeon pro w7#", MatrixUnits::kBFloat16},
    // Intel.
    {"data center gpu", MatrixUnits::kBFloat16},
    {"arc", MatrixUnits::kBFloat16},
};

bool Fits(std::string_view name, std::string_view begins) {
  const bool goes_on = begins.ends_with('#');
  if (goes_on) begins.remove_suffix(1);
  if (!name.starts_with(begins)) return false;
  const bool digit =
      name.size() > begins.size() && std::isdigit(static_cast<unsigned char>(name[begins.size()])) != 0;
  const bool ends_in_digit = std::isdigit(static_cast<unsigned char>(begins.back())) != 0;
  return goes_on || !ends_in_digit || !digit;
}

// Marks of kernels that only devices with bfloat16 run, and of those that Volta and Turing run. cuBLAS and cuDNN choose
// Volta's kernels on Turing, too, but on no other.
constexpr std::array<std::string_view, 14> kOfLater = {
    "ampere_", "sm80",   "sm86", "sm89", "sm90",   "sm100",       "sm120",
    "nvjet",   "s16816", "bf16", "tf32", "hopper", "cutlass_80_", "cutlass_90_"};
constexpr std::array<std::string_view, 6> kOfVoltaAndTuring = {"volta_", "turing_", "sm70",
                                                               "sm75",   "s884",    "s1688"};
// AMD's matrix instructions, as Tensile and Composable Kernel name their kernels.
constexpr std::array<std::string_view, 5> kOfAmd = {"_MI16x16", "_MI32x32", "xdl", "mfma", "_MFMA"};

template <typename Marks>
bool HasAny(std::string_view name, const Marks& marks) {
  return std::ranges::any_of(
      marks, [&](std::string_view mark) { return name.find(mark) != std::string_view::npos; });
}

}  // namespace

MatrixUnits UnitsOfDevice(std::string_view name) {
  const std::string plain = WithoutMaker(name);
  for (const Family& family : kFamilies) {
    if (Fits(plain, family.begins)) return family.units;
  }
  return MatrixUnits::kUnknown;
}

MatrixUnits UnitsForKernels(const std::vector<record::KernelStats>& kernels) {
  MatrixUnits units = MatrixUnits::kUnknown;
  for (const record::KernelStats& kernel : kernels) {
    if (!kernel.kernel_class.starts_with("matmul")) continue;
    if (HasAny(kernel.name, kOfLater) || HasAny(kernel.name, kOfAmd)) return MatrixUnits::kBFloat16;
    if (HasAny(kernel.name, kOfVoltaAndTuring)) units = MatrixUnits::kFloat16;
  }
  return units;
}

MatrixUnits MatrixUnitsOf(std::string_view device, const std::vector<record::KernelStats>& kernels) {
  const MatrixUnits by_name = UnitsOfDevice(device);
  return by_name != MatrixUnits::kUnknown ? by_name : UnitsForKernels(kernels);
}

}  // namespace fullbore::roofline
