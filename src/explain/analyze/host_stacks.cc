#include "explain/analyze/host_stacks.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

namespace fullbore::analyze {

namespace {

constexpr int64_t kShownPart = 1000;  // of all time: less is narrower than a pixel
constexpr size_t kDeepest = 100;      // frames; recursion goes deeper than anybody reads

struct Call {
  int64_t begin_ns, end_ns;
  timeline::NameId name;
};

struct Node {
  int64_t ns = 0, within_ns = 0;
  std::map<std::string, std::unique_ptr<Node>> calls;
};

// "ProfilerStep#12" and "ProfilerStep#13" are one place of the program.
std::string WithoutNumber(std::string name) {
  const size_t at = name.rfind('#');
  const bool numbered = at != std::string::npos && at + 1 < name.size() &&
                        name.find_first_not_of("0123456789", at + 1) == std::string::npos;
  if (numbered) name.resize(at);
  return name;
}

std::map<uint16_t, std::vector<Call>> ByThread(const timeline::DeviceTrace& trace) {
  std::map<uint16_t, std::vector<Call>> threads;
  const auto take = [&](const auto& each) {
    if (each.end_ns > each.begin_ns) threads[each.thread].push_back({each.begin_ns, each.end_ns, each.name});
  };
  for (const timeline::HostSpan& span : trace.spans) take(span);
  for (const timeline::HostCall& call : trace.calls) take(call);
  for (auto& [thread, calls] : threads) {
    std::ranges::stable_sort(calls, [](const Call& a, const Call& b) {
      return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
    });
  }
  return threads;
}

// One that outlasts its caller, as clocks of two recorders have it, ends with it.
void Nest(const RankTrace& rank, std::span<const Call> calls, Node& thread) {
  struct Open {
    int64_t end_ns;
    Node* node;
  };
  std::vector<Open> open = {{INT64_MAX, &thread}};
  for (const Call& call : calls) {
    while (open.back().end_ns <= call.begin_ns) open.pop_back();
    if (open.size() > kDeepest) continue;
    const int64_t end_ns = std::min(call.end_ns, open.back().end_ns);
    auto& node = open.back().node->calls[WithoutNumber(rank.Name(call.name))];
    if (!node) node = std::make_unique<Node>();
    node->ns += end_ns - call.begin_ns;
    open.back().node->within_ns += end_ns - call.begin_ns;
    open.push_back({end_ns, node.get()});
  }
  thread.ns = thread.within_ns;
}

HostStack Shown(std::string name, const Node& node, int64_t shortest_ns) {
  HostStack stack{std::move(name), node.ns, node.ns - node.within_ns, {}};
  for (const auto& [called, call] : node.calls) {
    if (call->ns >= shortest_ns) stack.calls.push_back(Shown(called, *call, shortest_ns));
  }
  std::ranges::stable_sort(stack.calls, std::ranges::greater(), &HostStack::ns);
  return stack;
}

}  // namespace

HostStack HostStacks(const RankTrace& rank) {
  Node root;
  for (const auto& [thread, calls] : ByThread(rank.trace())) {
    const auto& names = rank.trace().threads;
    auto& node =
        root.calls[thread < names.size() && !names[thread].empty() ? names[thread]
                                                                   : "thread " + std::to_string(thread)];
    if (!node) node = std::make_unique<Node>();
    Nest(rank, calls, *node);
    root.ns += node->ns;
  }
  root.within_ns = root.ns;
  return Shown("rank " + std::to_string(rank.rank()), root, std::max<int64_t>(1, root.ns / kShownPart));
}

nlohmann::ordered_json ToJson(const HostStack& stack) {
  nlohmann::ordered_json calls = nlohmann::ordered_json::array();
  for (const HostStack& call : stack.calls) calls.push_back(ToJson(call));
  return nlohmann::ordered_json::array({stack.name, stack.ns, stack.self_ns, std::move(calls)});
}

}  // namespace fullbore::analyze
