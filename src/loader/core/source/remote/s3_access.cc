#include "loader/core/source/remote/s3_access.h"

#include <cstdlib>

#include "base/fd.h"
#include "base/secrets.h"
#include "base/text.h"
#include "loader/core/source/remote/url.h"

namespace fullbore::loader::remote {
namespace {

constexpr const char* kDefaultRegion = "us-east-1";

std::string Field(const IniFile& file, const std::string& section, const std::string& name) {
  const auto found = file.find(section);
  if (found == file.end()) return "";
  const auto field = found->second.find(name);
  return field == found->second.end() ? "" : field->second;
}

class Finder {
 public:
  explicit Finder(const S3Surroundings& surroundings) : around_(surroundings) {
    profile_ = Variable("AWS_PROFILE").value_or("default");
    const std::string home = Variable("HOME").value_or("");
    credentials_path_ =
        Variable("AWS_SHARED_CREDENTIALS_FILE").value_or(home.empty() ? "" : home + "/.aws/credentials");
    config_path_ = Variable("AWS_CONFIG_FILE").value_or(home.empty() ? "" : home + "/.aws/config");
    if (auto text = around_.file(credentials_path_)) credentials_ = ParseIni(*text);
    if (auto text = around_.file(config_path_)) config_ = ParseIni(*text);
  }

  Result<std::optional<Credentials>> Keys() const {
    const auto key = Variable("AWS_ACCESS_KEY_ID"), secret = Variable("AWS_SECRET_ACCESS_KEY");
    if (key && secret) {
      return std::optional(Credentials{*key, *secret, Variable("AWS_SESSION_TOKEN").value_or("")});
    }
    if (key || secret) {
      return Error{ErrorCode::kInvalidArgument,
                   std::string(key ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY") + " is set, " +
                       (key ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID") + " is not",
                   "set both, or neither for public data"};
    }
    // A key may be in the config file, too.
    for (const IniFile* file : {&credentials_, &config_}) {
      const std::string section = Section(*file);
      Credentials found{Field(*file, section, "aws_access_key_id"),
                        Field(*file, section, "aws_secret_access_key"),
                        Field(*file, section, "aws_session_token")};
      if (!found.access_key_id.empty() && !found.secret_access_key.empty()) return std::optional(found);
    }
    if (const auto named = Variable("AWS_PROFILE")) {
      return Error{ErrorCode::kInvalidArgument,
                   "AWS_PROFILE is '" + *named + "', and neither '" + credentials_path_ + "' nor '" +
                       config_path_ + "' holds an access key for it",
                   "profiles for SSO and roles are not supported: run `aws configure export-credentials "
                   "--format env`, or unset AWS_PROFILE for public data"};
    }
    return std::optional<Credentials>();
  }

  std::string Region() const {
    for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
      if (const auto region = Variable(name)) return *region;
    }
    const std::string region = Field(config_, Section(config_), "region");
    return region.empty() ? kDefaultRegion : region;
  }

  std::optional<std::string> Variable(const std::string& name) const { return around_.variable(name); }

 private:
  // ~/.aws/config writes "[profile x]", but "[default]".
  std::string Section(const IniFile& file) const {
    return &file == &config_ && profile_ != "default" ? "profile " + profile_ : profile_;
  }

  const S3Surroundings& around_;
  std::string profile_, credentials_path_, config_path_;
  IniFile credentials_, config_;
};

}  // namespace

S3Surroundings S3Surroundings::Real() {
  return {.variable = [](const std::string& name) -> std::optional<std::string> {
            const char* value = std::getenv(name.c_str());
            if (value == nullptr || *value == '\0') return std::nullopt;
            return value;
          },
          .file = [](const std::string& path) { return ReadFile(path); }};
}

IniFile ParseIni(std::string_view text) {
  IniFile file;
  std::string section;
  for (std::string_view line : Split(text, '\n')) {
    // An indented line belongs to the value above ("s3 =" and what follows): nothing that we need.
    if (!line.empty() && (line[0] == ' ' || line[0] == '\t')) continue;
    line = Trim(line);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line.front() == '[' && line.back() == ']') {
      section = std::string(Trim(line.substr(1, line.size() - 2)));
      continue;
    }
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    file[section][std::string(Trim(line.substr(0, equals)))] = std::string(Trim(line.substr(equals + 1)));
  }
  return file;
}

Result<S3Access> FindS3Access(const std::string& endpoint_option, const S3Surroundings& surroundings) {
  const Finder finder(surroundings);
  S3Access access;
  access.endpoint = endpoint_option;
  for (const char* name : {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}) {
    if (access.endpoint.empty()) access.endpoint = finder.Variable(name).value_or("");
  }
  while (access.endpoint.ends_with('/')) access.endpoint.pop_back();
  if (!access.endpoint.empty() && SchemeOf(access.endpoint) != Scheme::kHttp) {
    return Error{ErrorCode::kInvalidArgument,
                 "the S3 endpoint '" + MaskUrl(access.endpoint) + "' is not an http:// or https:// URL",
                 "write it like http://127.0.0.1:9000"};
  }
  auto keys = finder.Keys();
  if (!keys) return keys.error();
  access.credentials = std::move(*keys);
  access.region = finder.Region();
  return access;
}

}  // namespace fullbore::loader::remote
