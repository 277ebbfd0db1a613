# Makes a C++ source that holds text files as string constants, so that the binary needs no files beside it:
#
#   cmake -DOUTPUT=x.cc -DHEADER=report/page_sources.h -DNAMESPACE=fullbore::report
#         "-DFILES=kPageHtml=path;kPageCss=path" -P EmbedText.cmake
#
# A name given several times holds the files one after another.
cmake_minimum_required(VERSION 3.25)  # a script has no policies otherwise: IN_LIST would be unknown

set(names "")
foreach(item IN LISTS FILES)
  string(REGEX MATCH "^([A-Za-z0-9]+)=(.+)$" matched "${item}")
  set(name "${CMAKE_MATCH_1}")
  file(READ "${CMAKE_MATCH_2}" text)
  if(NOT name IN_LIST names)
    list(APPEND names "${name}")
    set(literals_${name} "")
  endif()
  # A string literal may be limited to 64 kB; adjacent ones are joined by the compiler.
  string(APPEND literals_${name} "\n    R\"embedded(${text})embedded\"")
endforeach()

set(source "// Made by cmake/EmbedText.cmake.\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\n")
foreach(name IN LISTS names)
  string(APPEND source "const std::string_view ${name} =${literals_${name}};\n\n")
endforeach()
string(APPEND source "}  // namespace ${NAMESPACE}\n")
file(WRITE "${OUTPUT}" "${source}")
