# find_package(fullbore): the data loader as fullbore::loader, a static library.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(fmt)
find_dependency(PkgConfig)
include("${CMAKE_CURRENT_LIST_DIR}/LoaderLibraries.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/fullbore-targets.cmake")
