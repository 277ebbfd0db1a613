# One target per folder: fullbore_component(NAME SOURCES ... DEPENDS ... LIBRARIES ...) makes the static
# library fb_NAME from the folder's sources; fullbore_test(NAME SOURCES ... DEPENDS ...) its unit tests.
# Links are PRIVATE unless a header of the folder exposes the other's types (PUBLIC_DEPENDS).

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(FULLBORE_CCACHE ccache)
if(FULLBORE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${FULLBORE_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${FULLBORE_CCACHE}")
endif()

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
pkg_check_modules(sqlite3 REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)

add_library(fb_options INTERFACE)
target_compile_options(fb_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow
  $<$<COMPILE_LANGUAGE:CXX>:-Wextra-semi>
  -Wno-restrict  # false alarms on std::string in g++ 12 (GCC bug 105651)
  $<$<BOOL:${FULLBORE_WERROR}>:-Werror>)
if(FULLBORE_SANITIZE)
  target_compile_options(fb_options INTERFACE -fsanitize=${FULLBORE_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(fb_options INTERFACE -fsanitize=${FULLBORE_SANITIZE})
endif()
# What is shipped reads files and servers that others made. A slip in it then ends the program rather than obeys
# them: positions in memory are random, tables of functions read-only, buffers and stacks watched. Where the
# sources lay on the builder's machine is nobody's business.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)
target_compile_options(fb_options INTERFACE -fstack-protector-strong
  "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=" "-ffile-prefix-map=${PROJECT_BINARY_DIR}/=build/")
target_link_options(fb_options INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
if(NOT FULLBORE_SANITIZE)  # which know more of the same calls than these checks do
  target_compile_options(fb_options INTERFACE $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE>
    $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)  # needs optimisation
endif()
target_include_directories(fb_options INTERFACE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")

function(fullbore_component name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PUBLIC_DEPENDS;LIBRARIES" ${ARGN})
  add_library(fb_${name} STATIC ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPENDS PREPEND fb_)
  list(TRANSFORM ARG_PUBLIC_DEPENDS PREPEND fb_)
  target_link_libraries(fb_${name} PRIVATE fb_options ${ARG_DEPENDS} ${ARG_LIBRARIES} PUBLIC ${ARG_PUBLIC_DEPENDS})
endfunction()

# fullbore_embed(VARIABLE HEADER ... NAMESPACE ... FILES kName=path ...) has EmbedText.cmake write a source that holds the
# files, and puts its path into VARIABLE.
function(fullbore_embed variable)
  cmake_parse_arguments(ARG "" "HEADER;NAMESPACE" "FILES" ${ARGN})
  set(source "${CMAKE_CURRENT_BINARY_DIR}/page_sources.cc")
  list(TRANSFORM ARG_FILES REPLACE "^[A-Za-z]+=" "" OUTPUT_VARIABLE paths)
  set(script "${PROJECT_SOURCE_DIR}/cmake/EmbedText.cmake")
  add_custom_command(OUTPUT "${source}"
    COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${source}" "-DHEADER=${ARG_HEADER}" "-DNAMESPACE=${ARG_NAMESPACE}"
            "-DFILES=${ARG_FILES}" -P "${script}"
    DEPENDS ${paths} "${script}"
    VERBATIM)
  set(${variable} "${source}" PARENT_SCOPE)
endfunction()

if(FULLBORE_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
  enable_testing()
endif()

# The one file that depends on the path of the checkout: ccache can reuse all others in another clone.
add_library(fb_source_directory STATIC EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/src/base/testing/source_directory.cc")
target_link_libraries(fb_source_directory PRIVATE fb_options)
target_compile_definitions(fb_source_directory PRIVATE FULLBORE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

# What is tested is optimized as the product is; optimizing the tests would only make them compile longer. Of
# precompiled headers g++ 12 forgets that they are the system's, in which these are false alarms.
set(fb_test_options $<$<CONFIG:Release>:-O1> -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)

# What nearly every test includes, read by the compiler once: a third of the time that compiling a test takes.
if(FULLBORE_TESTS)
  add_executable(fb_test_headers EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/src/base/testing/common_headers.cc")
  target_link_libraries(fb_test_headers PRIVATE fb_options fmt::fmt GTest::gmock_main)
  target_compile_options(fb_test_headers PRIVATE ${fb_test_options})
  target_precompile_headers(fb_test_headers PRIVATE <algorithm> <filesystem> <fstream> <functional> <map> <optional>
    <random> <string> <string_view> <thread> <vector> <fmt/format.h> <gmock/gmock.h> <gtest/gtest.h>)
endif()

function(fullbore_test name)
  if(NOT FULLBORE_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  add_executable(${name}_test ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPENDS PREPEND fb_)
  target_link_libraries(${name}_test PRIVATE fb_options ${ARG_DEPENDS} ${ARG_LIBRARIES} fb_source_directory fmt::fmt
    GTest::gmock_main)
  target_precompile_headers(${name}_test REUSE_FROM fb_test_headers)
  target_compile_options(${name}_test PRIVATE ${fb_test_options})
  gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 60 DISCOVERY_MODE PRE_TEST)
endfunction()
