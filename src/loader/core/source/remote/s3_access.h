// The server of a bucket and the credentials, from the environment and ~/.aws, as the AWS command line reads
// them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "loader/core/source/remote/sigv4.h"

namespace fullbore::loader::remote {

// The source of environment variables and files, so that tests need neither.
struct S3Surroundings {
  std::function<std::optional<std::string>(const std::string& name)> variable;  // set and not empty
  std::function<Result<std::string>(const std::string& path)> file;
  static S3Surroundings Real();
};

struct S3Access {
  std::string endpoint;  // "http://127.0.0.1:9000", without a slash at its end; empty: AWS
  std::string region;
  std::optional<Credentials> credentials;  // none: requests are not signed
};

// Keys: $AWS_ACCESS_KEY_ID and related variables, else the profile ($AWS_PROFILE, "default") in
// ~/.aws/credentials, else none. Region: $AWS_REGION, $AWS_DEFAULT_REGION, ~/.aws/config, us-east-1. A
// profile that was asked for by name and does not exist is an error.
Result<S3Access> FindS3Access(const std::string& endpoint_option, const S3Surroundings& surroundings);

// "[section]" and "name = value" lines, as in ~/.aws; all others are ignored.
using IniFile = std::map<std::string, std::map<std::string, std::string>>;
IniFile ParseIni(std::string_view text);

}  // namespace fullbore::loader::remote
