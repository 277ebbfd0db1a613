# What is installed where, for `cmake --install`, `pip install .` and the Debian package alike:
#
#   bin/fullbore
#   share/man/man1/fullbore*.1
#   share/bash-completion/, share/zsh/, share/fish/
#                                       Completion, where these shells look for that of packages.
#   share/fullbore/python/fullbore/     the Python part; the program finds it as <its own directory>/../share/...
#                                       Includes fullbore.data with its extension, if that was built, and the
#                                       extension of the hook (hook/core/_native).
#   share/fullbore/deploy/              What administrators set up around `fullbore agent`
#   lib/fullbore/libfullbore_slurm.so   The plugin for Slurm, if that was built: deploy/slurm/plugstack.conf names it.
#   share/doc/fullbore/
#   lib/libfullbore_loader.a, include/fullbore/, lib/cmake/fullbore/
#                                       The loader for C++ programs: the component `dev`, installed only by name
#                                       (cmake --install BUILD --component dev), and the package fullbore-dev.
#
# In a wheel the first goes to the environment's bin and the second to its share: the relative path stays the same.
# There, fullbore.data and its extension are in site-packages only.

include(CMakePackageConfigHelpers)
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # installing needs the program, not the tests

if(SKBUILD)
  set(FULLBORE_BIN_DIR "${SKBUILD_SCRIPTS_DIR}")
  set(FULLBORE_SHARE_DIR "${SKBUILD_DATA_DIR}/share")
  set(FULLBORE_EXTENSION_DIR "${SKBUILD_PLATLIB_DIR}/fullbore/data")
  set(FULLBORE_ZSH_DIR site-functions)
  set(FULLBORE_LEFT_OUT PATTERN "data" EXCLUDE)
else()
  set(FULLBORE_BIN_DIR "${CMAKE_INSTALL_BINDIR}")
  set(FULLBORE_SHARE_DIR "${CMAKE_INSTALL_DATAROOTDIR}")
  set(FULLBORE_EXTENSION_DIR "${FULLBORE_SHARE_DIR}/fullbore/python/fullbore/data")
  set(FULLBORE_ZSH_DIR vendor-completions)  # Debian's
  set(FULLBORE_EXTENSION_NEED OPTIONAL)
endif()

if(TARGET fullbore)
  install(TARGETS fullbore RUNTIME DESTINATION "${FULLBORE_BIN_DIR}")
  install(DIRECTORY "${PROJECT_BINARY_DIR}/man/" DESTINATION "${FULLBORE_SHARE_DIR}/man/man1" OPTIONAL
          FILES_MATCHING PATTERN "*.1")
endif()
if(EXISTS "${PROJECT_SOURCE_DIR}/python/fullbore")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/fullbore" DESTINATION "${FULLBORE_SHARE_DIR}/fullbore/python"
          FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "*.pth" PATTERN "py.typed" PATTERN "activities.txt"
          PATTERN "__pycache__" EXCLUDE PATTERN "test*" EXCLUDE ${FULLBORE_LEFT_OUT})
endif()
if(TARGET fb_loader_python)
  # Optional: `make build` builds only the program.
  install(TARGETS fb_loader_python LIBRARY DESTINATION "${FULLBORE_EXTENSION_DIR}" ${FULLBORE_EXTENSION_NEED})
endif()
if(TARGET fb_hook_native)
  install(TARGETS fb_hook_native LIBRARY DESTINATION "${FULLBORE_SHARE_DIR}/fullbore/python/fullbore/hook/core")
endif()
if(TARGET fullbore_slurm)
  install(TARGETS fullbore_slurm LIBRARY DESTINATION lib/fullbore)
endif()
set(completion "${PROJECT_SOURCE_DIR}/src/cli/completion/fullbore")
install(FILES "${completion}.bash" DESTINATION "${FULLBORE_SHARE_DIR}/bash-completion/completions" RENAME fullbore)
install(FILES "${completion}.zsh" DESTINATION "${FULLBORE_SHARE_DIR}/zsh/${FULLBORE_ZSH_DIR}" RENAME _fullbore)
install(FILES "${completion}.fish" DESTINATION "${FULLBORE_SHARE_DIR}/fish/vendor_completions.d")
if(NOT SKBUILD)
  install(FILES LICENSE DESTINATION "${FULLBORE_SHARE_DIR}/doc/fullbore" RENAME copyright)
  install(FILES CHANGELOG.md DESTINATION "${FULLBORE_SHARE_DIR}/doc/fullbore")
  install(DIRECTORY deploy DESTINATION "${FULLBORE_SHARE_DIR}/fullbore")
  install(DIRECTORY docs/findings DESTINATION "${FULLBORE_SHARE_DIR}/doc/fullbore" FILES_MATCHING PATTERN "*.md")
endif()

if(NOT SKBUILD)
  set(FULLBORE_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/fullbore")
  install(TARGETS fullbore_loader EXPORT fullbore-targets
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev EXCLUDE_FROM_ALL)
  install(EXPORT fullbore-targets NAMESPACE fullbore:: DESTINATION "${FULLBORE_CMAKE_DIR}" COMPONENT dev EXCLUDE_FROM_ALL)
  install(DIRECTORY include/fullbore DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT dev EXCLUDE_FROM_ALL)
  write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/fullbore-config-version.cmake" COMPATIBILITY ExactVersion)
  install(FILES cmake/fullbore-config.cmake cmake/LoaderLibraries.cmake
          "${CMAKE_CURRENT_BINARY_DIR}/fullbore-config-version.cmake"
          DESTINATION "${FULLBORE_CMAKE_DIR}" COMPONENT dev EXCLUDE_FROM_ALL)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME fullbore)
set(CPACK_PACKAGE_CONTACT "Fullbore maintainers <maintainers@fullbore.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION
    "Runs any training command unmodified, records it, and says at the end where the time of every step went, what to change and what that will gain.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# Two packages: fullbore, and fullbore-dev, which depends on what users of the static library must link with.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL Unspecified dev)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME fullbore)
set(CPACK_DEBIAN_DEV_PACKAGE_NAME fullbore-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
    "libfmt-dev, libjpeg-dev, libpng-dev, libwebp-dev, zlib1g-dev, libhdf5-dev, libcurl4-openssl-dev, libssl-dev, libpugixml-dev, libutf8proc-dev, pkg-config")
set(CPACK_COMPONENT_DEV_DESCRIPTION "The data loader of fullbore for C++ programs: headers and a static library.")
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS python3)
include(CPack)
