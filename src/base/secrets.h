// What nobody but its owner should read (keys, tokens, passwords) is masked before it is stored or shown:
// command lines of a run and of its processes, URLs in messages.
//
// What is a secret is told by its name, as in --api-key X, HF_TOKEN=X, "password": "X", by a URL's
// "user:password@", and by being a URL's query, which may be a signature. A secret that is named nowhere (a
// third argument) is not recognised: `fullbore run --no-command` keeps no command line at all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fullbore {

inline constexpr std::string_view kMask = "***";

// Whether an option, variable or member of this name holds a secret: "--api-key", "HF_TOKEN", "dbPassword";
// not "--tokenizer", "--num-tokens", "--key-dim", "monkey".
bool NamesASecret(std::string_view name);

// A command line. A word that is a text of its own, as behind `sh -c`, is searched as well.
std::vector<std::string> MaskSecrets(std::vector<std::string> words);

// Any text: a line of code, what stands behind `sh -c`.
std::string MaskSecrets(std::string_view text);

// "https://***@host/x.tar?***". What is no URL stays as it is.
std::string MaskUrl(std::string_view url);

// The same for all URLs of a text, such as a message that names some.
std::string MaskUrls(std::string_view text);
Error MaskUrls(Error error);

}  // namespace fullbore
