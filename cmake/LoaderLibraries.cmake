# The libraries that the loader links with, beside Threads and fmt: PkgConfig::jpeg and so on. Also installed,
# because whoever links with the loader's static library needs them all.
pkg_check_modules(jpeg REQUIRED IMPORTED_TARGET libjpeg)  # libjpeg-turbo's: crops and skips rows
pkg_check_modules(png REQUIRED IMPORTED_TARGET libpng)
pkg_check_modules(webp REQUIRED IMPORTED_TARGET libwebp)
pkg_check_modules(zlib REQUIRED IMPORTED_TARGET zlib)
pkg_search_module(hdf5 REQUIRED IMPORTED_TARGET hdf5-serial hdf5)
pkg_check_modules(libcurl REQUIRED IMPORTED_TARGET libcurl)
pkg_check_modules(libcrypto REQUIRED IMPORTED_TARGET libcrypto)
pkg_check_modules(pugixml REQUIRED IMPORTED_TARGET pugixml)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)
