# The Python whose headers the extensions are built with: .venv's where there is one, because it runs the tests.
if(NOT DEFINED Python_EXECUTABLE AND NOT SKBUILD AND EXISTS "${PROJECT_SOURCE_DIR}/.venv/bin/python3")
  set(Python_EXECUTABLE "${PROJECT_SOURCE_DIR}/.venv/bin/python3")
endif()
set(stable_abi)
if(NOT CMAKE_VERSION VERSION_LESS 3.26)  # which is the first to know it
  set(stable_abi OPTIONAL_COMPONENTS Development.SABIModule)
endif()
find_package(Python 3.9 COMPONENTS Interpreter Development.Module ${stable_abi} QUIET)
