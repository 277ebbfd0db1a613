// Paths and URLs as text: touches no file.
#pragma once

#include <string>
#include <string_view>

namespace fullbore::loader {

bool IsRemote(std::string_view path);                 // http://, https://, s3://
std::string LocalPath(std::string_view path);         // without file://
std::string_view BaseName(std::string_view path);     // after the last slash
std::string_view DirectoryOf(std::string_view path);  // before the last slash; empty if there is none
std::string JoinPath(std::string_view directory, std::string_view name);  // an absolute name or URL is kept
std::string LowerCase(std::string_view text);                             // ASCII only
// In lower case, with the dot: ".jpg". Without the "?..." of a URL.
std::string ExtensionOf(std::string_view path);
// Whether torchvision's ImageFolder considers it an image: .jpg .jpeg .png .ppm .bmp .pgm .tif .tiff .webp.
bool HasImageExtension(std::string_view path);

}  // namespace fullbore::loader
