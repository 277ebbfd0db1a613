// Masks secrets (keys, tokens, passwords) before they are stored or shown: in the command lines of a run and
// of its processes, and in URLs in messages.
//
// A secret is recognised by its name, as in --api-key X, HF_TOKEN=X, "password": "X"; by its place in a URL,
// as in "user:password@"; and every URL query counts as one, since it may be a signature. A secret without a
// name (a third argument) is not recognised: `fullbore run --no-command` stores no command line at all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fullbore {

inline constexpr std::string_view kMask = "***";

// Whether an option, variable or member of this name holds a secret: "--api-key", "HF_TOKEN", "dbPassword";
// but not "--tokenizer", "--num-tokens", "--key-dim", "monkey".
bool NamesASecret(std::string_view name);

// A command line. A word that is itself a text, as after `sh -c`, is searched as well.
std::vector<std::string> MaskSecrets(std::vector<std::string> words);

// Any text: a line of code, the script after `sh -c`.
std::string MaskSecrets(std::string_view text);

// "https://***@host/x.tar?***". A text that is not a URL is returned unchanged.
std::string MaskUrl(std::string_view url);

// The same for every URL in a text, such as a message.
std::string MaskUrls(std::string_view text);
Error MaskUrls(Error error);

}  // namespace fullbore
