// The tools that a client may call: each is a subcommand of fullbore, started as a person would start it, so that there
// is no second way to an answer. A tool is a row of a table: its parameters say what they become on the command line;
// the schema that clients see and the skill's page (docs/skill/SKILL.md) are made from the same rows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "mcp/allowed_paths.h"
#include "mcp/message.h"

namespace fullbore::mcp {

enum class Kind : uint8_t {
  kText,         // --flag=TEXT, or a word of its own without a flag
  kTexts,        // once for each
  kSwitch,       // --flag, where it is true
  kProcess,      // --flag=NUMBER: a process that is looked at, which starts another one
  kRecording,    // a run by its id or "last", or a file: a word of its own
  kRecordings,   // several
  kFile,         // --flag=PATH
  kRuns,         // -o PATH: where runs are kept
  kCommand,      // the words after "--"
  kCommandText,  // --flag=TEXT, which is a command
  kLimit,        // after so long it is asked to end; stands on no command line
};

struct Parameter {
  const char* name;
  Kind kind;
  const char* flag;  // empty where the kind needs none
  const char* says;
  bool required = false;
};

// Where a person reads the answer: what the tool's text is made of.
enum class Says : uint8_t { kOutput, kErrors };

struct Tool {
  const char* name;
  std::vector<const char*> words;  // the subcommand, with what is always asked of it
  const char* description;
  Says says;
  bool has_json;  // it takes --json FILE
  std::vector<Parameter> parameters;
};

const std::vector<Tool>& AllTools();
const Tool* ToolNamed(const std::string& name);
Json SchemaOf(const Tool& tool);  // of its arguments

// What is known of the place where the server works.
struct Place {
  AllowedPaths paths;
  std::string runs;  // where runs are kept, unless a call says otherwise
  // The file of a run, by its id or the beginning of one; "" is the newest.
  std::function<Result<std::string>(const std::string& runs, const std::string& name)> find_run;
};

// A call with its arguments judged.
struct Call {
  const Tool* tool = nullptr;
  std::vector<std::string> words;   // behind "fullbore", but for --json
  std::vector<std::string> starts;  // what it starts on behalf of the client, for people; empty: nothing
  std::vector<std::string> behind;  // "--" and a command
  std::optional<double> limit_s;
};

// An error that says which argument is wrong, and what it takes instead.
Result<Call> CallOf(const Tool& tool, const Json& arguments, const Place& place);

}  // namespace fullbore::mcp
