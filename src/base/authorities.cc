#include "base/authorities.h"

#include <unistd.h>

#include <cstdlib>

namespace fullbore {
namespace {

constexpr const char* kPlaces[] = {
    "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",                   // Red Hat's, Fedora until 42
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // Fedora, whatever links lead there
    "/etc/ssl/ca-bundle.pem",                             // SUSE
    "/etc/ssl/cert.pem",                                  // Alpine's base image
};

}  // namespace

std::string AuthoritiesPath(std::initializer_list<const char*> variables, const std::string& root) {
  for (const char* name : variables) {
    const char* path = std::getenv(name);
    if (path != nullptr && *path != '\0') return path;
  }
  for (const char* place : kPlaces) {
    if (access((root + place).c_str(), R_OK) == 0) return root + place;
  }
  return "";
}

}  // namespace fullbore
