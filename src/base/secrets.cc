#include "base/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

namespace fullbore {

namespace {

using Names = std::span<const std::string_view>;

// A name is split into lower-case words ("dbPassword" and "DB_PASSWORD" into "db", "password") and judged by
// these tables. A name that could mean either is masked: masking a harmless number does no harm.
//
// Always secret, unless the name ends in one of kNotTheValue.
constexpr std::string_view kSecretWords[] = {
    "secret",     "secrets",       "password",   "passwords",   "passwd",    "pwd",
    "passphrase", "passcode",      "credential", "credentials", "apikey",    "accesskey",
    "secretkey",  "privatekey",    "authkey",    "apitoken",    "authtoken", "accesstoken",
    "bearer",     "authorization", "jwt",        "cookie"};
// Secret by themselves, and next to any word that is not in kHarmlessBeside.
constexpr std::string_view kSecretAlone[] = {"key", "token", "auth", "signature", "sig", "pass"};
// Next to these, they are secret in any case, and so are their plurals.
constexpr std::string_view kSecretBeside[] = {
    "api", "access", "private", "auth",    "account", "encryption", "signing", "deploy",
    "ssh", "master", "service", "storage", "session", "refresh",    "license", "security",
    "hf",  "hub",    "github",  "gitlab",  "bot",     "wandb",      "openai",  "aws"};
constexpr std::string_view kPlural[] = {"keys", "tokens", "signatures"};
// Counts and sizes; tokens of a text; keys of attention, of a table and of a sample's members.
constexpr std::string_view kHarmlessBeside[] = {
    "num",       "n",       "max",     "min",     "len",    "length",    "limit",  "count", "size",
    "dim",       "dims",    "rate",    "ratio",   "prob",   "budget",    "weight", "loss",  "level",
    "per",       "index",   "pad",     "padding", "eos",    "bos",       "unk",    "mask",  "sep",
    "cls",       "special", "new",     "start",   "stop",   "end",       "begin",  "first", "last",
    "prompt",    "drop",    "dropout", "merge",   "embed",  "embedding", "head",   "heads", "query",
    "attention", "frame",   "frames",  "point",   "points", "image",     "img",    "label", "caption",
    "sort",      "primary", "foreign", "column",  "metric", "feature",   "type",   "types", "version",
    "method",    "mode",    "no"};
// How a name ends that is about a secret but does not hold it.
constexpr std::string_view kNotTheValue[] = {"file",   "path", "dir",    "directory",
                                             "length", "len",  "policy", "expiry"};

bool IsIn(std::string_view word, Names names) {
  return std::find(names.begin(), names.end(), word) != names.end();
}

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetterOrDigit(char c) { return IsUpper(c) || IsLower(c) || IsDigit(c); }
bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0'; }
bool IsQuote(char c) { return c == '"' || c == '\'' || c == '`'; }

// "--hubApi_KEY2" is "hub", "api", "key".
std::vector<std::string> WordsOf(std::string_view name) {
  std::vector<std::string> words;
  bool ended = true;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (!IsUpper(c) && !IsLower(c)) {
      ended = true;
      continue;
    }
    const bool hump =
        i > 0 && IsUpper(c) &&
        (IsLower(name[i - 1]) || (IsUpper(name[i - 1]) && i + 1 < name.size() && IsLower(name[i + 1])));
    if (ended || hump) words.emplace_back();
    words.back() += static_cast<char>(IsUpper(c) ? c - 'A' + 'a' : c);
    ended = false;
  }
  return words;
}

bool Any(const std::vector<std::string>& words, Names names) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) { return IsIn(word, names); });
}

// The characters of a name within a text: options start with dashes, Hydra settings contain dots.
bool IsNameCharacter(char c) { return IsLetterOrDigit(c) || c == '-' || c == '_' || c == '.'; }

size_t SkipBlanks(std::string_view text, size_t at) {
  while (at < text.size() && IsBlank(text[at])) ++at;
  return at;
}

// The end of a value that begins at `at`: the closing quote, or the end of a word in a shell or in code.
size_t EndOfValue(std::string_view text, size_t at) {
  constexpr std::string_view kEnds = ";|&)]}<>";
  while (at < text.size() && !IsBlank(text[at]) && !IsQuote(text[at]) &&
         kEnds.find(text[at]) == std::string_view::npos)
    ++at;
  return at;
}

struct Range {
  size_t begin = 0, end = 0;
};

// The value that belongs to the secret's name ending at `at`; empty if none follows:
//   name=X   name: X   "name": "X"   ["name"] = 'X'   --name X   "--name", "X"   Authorization: Bearer X
Range ValueBehind(std::string_view text, std::string_view name, size_t at) {
  size_t next = at;
  while (next < text.size() && (IsQuote(text[next]) || text[next] == ']' || text[next] == '\\')) ++next;
  next = SkipBlanks(text, next);
  if (next < text.size() && (text[next] == '=' || text[next] == ':')) {
    if (next + 1 < text.size() && (text[next + 1] == '=' || text[next + 1] == ':')) return {};  // == and ::
    next = SkipBlanks(text, next + 1);
  } else {
    if (!name.starts_with('-') || next == at) return {};
    if (next < text.size() && text[next] == ',') next = SkipBlanks(text, next + 1);
    if (next < text.size() && text[next] == '-') return {};  // the next option: this one was a switch
  }
  while (next < text.size() && text[next] == '\\') ++next;
  if (next < text.size() && IsQuote(text[next])) {
    const char quote = text[next];
    const size_t end = std::min(text.find(quote, next + 1), text.size());
    return {next + 1, end};
  }
  size_t end = EndOfValue(text, next);
  for (const std::string_view scheme : {"Bearer", "Basic", "Token", "bearer", "basic", "token"}) {
    if (text.substr(next, end - next) == scheme) end = EndOfValue(text, SkipBlanks(text, end));
  }
  return {next, end};
}

// Masks the values of secrets named anywhere in a text.
std::string MaskNamed(std::string_view text) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    if (!IsNameCharacter(text[at])) {
      out += text[at++];
      continue;
    }
    size_t end = at;
    while (end < text.size() && IsNameCharacter(text[end])) ++end;
    const std::string_view name = text.substr(at, end - at);
    out += name;
    at = end;
    if (!NamesASecret(name)) continue;
    const Range value = ValueBehind(text, name, end);
    if (value.end <= value.begin) continue;
    out += text.substr(end, value.begin - end);
    out += kMask;
    at = value.end;
  }
  return out;
}

bool IsHttp(std::string_view scheme) {
  std::string lower(scheme);
  for (char& c : lower) c = static_cast<char>(IsUpper(c) ? c - 'A' + 'a' : c);
  return lower.ends_with("http") || lower.ends_with("https");
}

bool EndsUrl(char c) { return IsBlank(c) || IsQuote(c) || c == '<' || c == '>'; }

// The end of a URL within a text is not certain: its path may hold blanks and quotes. A '?' after it always
// begins its query, unless a blank or a quote follows, as after a question.
std::string MaskUrlsIn(std::string_view text, bool is_url) {
  std::string out;
  size_t done = 0;
  const auto find = [&](size_t from, auto wanted) {
    while (from < text.size() && !wanted(from)) ++from;
    return from;
  };
  for (size_t colon; (colon = text.find("://", done)) != std::string_view::npos;) {
    const size_t authority = colon + 3;
    const size_t path = find(authority, [&](size_t i) {
      return text[i] == '/' || text[i] == '?' || text[i] == '#' || (!is_url && IsBlank(text[i]));
    });
    out += text.substr(done, authority - done);
    const size_t at = text.substr(authority, path - authority).rfind('@');
    if (at != std::string_view::npos) out += kMask;
    done = at == std::string_view::npos ? authority : authority + at;
    size_t scheme = colon;
    while (scheme > 0 && IsLetterOrDigit(text[scheme - 1])) --scheme;
    if (!IsHttp(text.substr(scheme, colon - scheme))) continue;  // the key of an S3 object may hold a '?'
    // In a list of URLs the next URL may come first.
    const size_t query = find(path, [&](size_t i) { return text[i] == '?' || text.substr(i, 3) == "://"; });
    if (query == text.size() || text[query] != '?') continue;
    const size_t end = find(query, [&](size_t i) { return !is_url && EndsUrl(text[i]); });
    out += text.substr(done, query + 1 - done);
    if (end > query + 1) out += kMask;
    done = end;
  }
  out += text.substr(done);
  return out;
}

// "--password=anything at all" is one value, whatever it contains.
std::string MaskWord(const std::string& word) {
  const size_t equals = word.find('=');
  const auto name = std::string_view(word).substr(0, std::min(equals, word.size()));
  const bool named = equals != std::string::npos && std::all_of(name.begin(), name.end(), [](char c) {
                       return IsNameCharacter(c) || c == '+' || c == '/' || c == '@';
                     });
  if (named && equals + 1 < word.size() && NamesASecret(name))
    return std::string(name) + "=" + std::string(kMask);
  if (named && !name.empty()) return std::string(name) + "=" + MaskWord(word.substr(equals + 1));
  return MaskSecrets(word);
}

}  // namespace

bool NamesASecret(std::string_view name) {
  const std::vector<std::string> words = WordsOf(name);
  if (words.empty() || IsIn(words.back(), kNotTheValue)) return false;
  if (Any(words, kSecretWords)) return true;
  bool found = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool alone = IsIn(words[i], kSecretAlone);
    if (!alone && !IsIn(words[i], kPlural)) continue;
    for (size_t j = 0; j < words.size(); ++j) {
      if (j != i && IsIn(words[j], kSecretBeside)) return true;
    }
    found = found || alone;
  }
  return found && !Any(words, kHarmlessBeside);
}

std::string MaskSecrets(std::string_view text) { return MaskNamed(MaskUrls(text)); }

std::vector<std::string> MaskSecrets(std::vector<std::string> words) {
  bool value_follows = false;
  for (std::string& word : words) {
    const bool option =
        word.size() > 1 && word[0] == '-' && word.find_first_of("= \t\n") == std::string::npos;
    if (value_follows && !option && !word.empty()) {
      word = kMask;
      value_follows = false;
      continue;
    }
    value_follows = option && NamesASecret(word);
    word = MaskWord(word);
  }
  return words;
}

std::string MaskUrl(std::string_view url) { return MaskUrlsIn(url, true); }
std::string MaskUrls(std::string_view text) { return MaskUrlsIn(text, false); }

Error MaskUrls(Error error) {
  error.text = MaskUrls(error.text);
  error.hint = MaskUrls(error.hint);
  return error;
}

}  // namespace fullbore
