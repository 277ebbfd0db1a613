// The Model Context Protocol's side of fullbore: what a client asks becomes a call of a tool, and what that answers
// becomes a message. No process and no file descriptor: calls are started through a Starter, and messages leave through
// `send`, so that all of it is tested by words. One thread.
//
//   initialize, ping          at once
//   tools/list, tools/call    a call runs beside others; its answer comes when it has ended
//   resources/list, ...       runs, by `fullbore explain`; and reports: all that the calls of this session answered
//
// What starts a process on behalf of the client needs --allow-run, or the client's own confirmation: a request of ours
// (elicitation/create) that a person answers.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "mcp/job.h"
#include "mcp/message.h"
#include "mcp/tool.h"

namespace fullbore::mcp {

struct ServerOptions {
  std::string version;  // of fullbore
  bool allow_run = false;
  Place place;
};

class Server {
 public:
  Server(ServerOptions options, Starter& starter, std::function<void(const Json&)> send)
      : options_(std::move(options)), starter_(starter), send_(std::move(send)) {}

  void Take(const Lines::Line& line);
  // Looks after what runs: answers, progress, and the end of what had its time.
  void Tick(int64_t now_ns);
  void StopAll(int64_t now_ns);  // and answers nothing more
  bool busy() const { return !running_.empty(); }

 private:
  // What a call answered, kept to be read.
  struct Report {
    std::string name;
    Json value;
    size_t bytes = 0;
  };

  // A call from its request to its answer.
  struct Running {
    Json id;              // null: nobody waits for it any more
    Json progress_token;  // null: no progress is wanted
    Call call;
    std::string resource;  // that is read by it; empty: a tool is called
    std::unique_ptr<Job> job;
    int64_t begin_ns = 0, told_ns = 0;
  };

  void Handle(const Message& message);
  void HandleRequest(const Message& message);
  void HandleAnswer(const Message& message);
  void Cancel(const Json& id);
  void Refuse(const Json& id, Fault fault, const std::string& text);
  bool IsOpen(const Json& id) const;

  Json Initialize(const Json& params);
  void CallTool(const Message& message);
  void Ask(Running running);
  bool HasRoomFor(const Call& call) const;
  void Start(Running running);
  void TellProgress(Running& running, int64_t now_ns);
  void Fail(const Running& running, const Error& error);
  Json AnswerTo(const Running& running, const Ended& ended);

  Json ToolResult(const Tool& tool, const Ended& ended);
  void ListResources(const Message& message);
  void ReadResource(const Message& message);
  void ReadReport(const Message& message, const std::string& name, std::string_view path);
  std::string Keep(Json value, size_t bytes);  // the report's name

  const ServerOptions options_;
  Starter& starter_;
  const std::function<void(const Json&)> send_;
  bool initialized_ = false, can_ask_ = false;
  int64_t now_ns_ = 0;
  std::list<Running> running_;
  std::map<std::string, Running> asked_;  // by the id of our request: it waits for a person
  int64_t requests_ = 0, reports_made_ = 0;
  std::deque<Report> reports_;  // the last ones
};

}  // namespace fullbore::mcp
