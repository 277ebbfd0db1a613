// Whether two declarations of a C function or struct are ABI-compatible: what is passed has the same kind and
// size, argument by argument and behind pointers. Type names may differ, and do.
#pragma once

#include <cstddef>
#include <type_traits>

namespace abi {

template <typename T>
concept Complete = requires {
  sizeof(T);
};

template <typename Ours, typename Theirs>
constexpr bool SameValue() {
  using O = std::remove_cv_t<Ours>;
  using T = std::remove_cv_t<Theirs>;
  if constexpr (std::is_pointer_v<O> && std::is_pointer_v<T>) {
    using OursBehind = std::remove_cv_t<std::remove_pointer_t<O>>;
    using TheirsBehind = std::remove_cv_t<std::remove_pointer_t<T>>;
    if constexpr (std::is_void_v<OursBehind> || std::is_void_v<TheirsBehind>)
      return std::is_void_v<OursBehind> == std::is_void_v<TheirsBehind>;
    else if constexpr (Complete<OursBehind> && Complete<TheirsBehind>)
      // A buffer that the library fills may be larger than it thinks, never smaller; SAME_SIZE checks the
      // rest.
      return std::is_class_v<OursBehind> ? sizeof(OursBehind) >= sizeof(TheirsBehind)
                                         : SameValue<OursBehind, TheirsBehind>();
    else
      return !Complete<OursBehind> && !Complete<TheirsBehind>;  // handles
  } else if constexpr (std::is_pointer_v<O> && std::is_class_v<T>) {
    // NVML's newer handles are structs with one pointer, which are passed like that pointer.
    return std::is_trivially_copyable_v<T> && sizeof(T) == sizeof(void*);
  } else if constexpr (std::is_floating_point_v<O> || std::is_floating_point_v<T>) {
    return std::is_same_v<O, T>;
  } else if constexpr (std::is_class_v<O> || std::is_class_v<T>) {
    return std::is_class_v<O> && std::is_class_v<T> && sizeof(O) == sizeof(T) && alignof(O) == alignof(T);
  } else {
    return (std::is_integral_v<O> || std::is_enum_v<O>)&&(std::is_integral_v<T> ||
                                                          std::is_enum_v<T>)&&sizeof(O) == sizeof(T);
  }
}

template <typename Ours, typename Theirs>
struct SameFunction : std::false_type {};

template <typename R1, typename... A1, typename R2, typename... A2>
struct SameFunction<R1 (*)(A1...), R2 (*)(A2...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A1) != sizeof...(A2))
      return false;
    else
      return SameValue<R1, R2>() && (SameValue<A1, A2>() && ...);
  }();
};

}  // namespace abi

// A field of a struct has the same offset and size.
#define SAME_FIELD(ours, our_field, theirs, their_field)                                        \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) &&                   \
                    abi::SameValue<decltype(ours::our_field), decltype(theirs::their_field)>(), \
                #theirs "." #their_field)
#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define SAME_NUMBER(ours, theirs) \
  static_assert(static_cast<unsigned long long>(ours) == static_cast<unsigned long long>(theirs), #theirs)
