#include "watch/notify/forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/text.h"

namespace fullbore::watch {

using Json = nlohmann::ordered_json;

namespace {

constexpr int64_t kTrustedForNs = 300 * kNsPerSecond;

// Below what each of the chats takes of a text: Slack 150 and 3,000 characters, and 10 fields of 2,000; Discord 256,
// 4,096, and 25 of 1,024, 6,000 together and with its escapes; Teams 28 KB together.
constexpr size_t kLongestHeadline = 120, kLongestText = 1000, kLongestValue = 160, kMostFacts = 10;

constexpr int kRed = 0xD13438, kGreen = 0x107C10;  // of Discord's stripe

// "2026-11-21T09:15:02Z"
std::string Rfc3339(int64_t wall_ns) {
  std::string text = FormatUtc(wall_ns);
  std::ranges::replace(text, ' ', 'T');
  return text + "Z";
}

bool IsOver(const Json& alert) { return alert.contains("resolved_unix_ns"); }

std::vector<std::string> EvidenceOf(const Json& alert) {
  std::vector<std::string> lines;
  for (const auto& each : alert.value("evidence", Json::array()))
    lines.push_back(fmt::format("{}: {}", each.value("what", ""),
                                FormatQuantity(each.value("value", 0.0), each.value("unit", ""))));
  return lines;
}

// "12.40 USD"; empty where no price is known.
std::string MoneyLost(const Json& alert) {
  const auto lost = alert.value("lost", Json::object());
  if (!lost.contains("money")) return "";
  return fmt::format("{:.2f} {}", lost.value("money", 0.0), lost.value("currency", ""));
}

// Never in the middle of a character.
std::string Cut(std::string text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.substr(0, most) + "...";
}

struct Fact {
  std::string name, text;
};

// What the chats show of an alert.
struct Message {
  bool over = false;
  std::string headline;  // "Firing: waits for data"
  std::string text;      // what happened
  std::vector<Fact> facts;
};

std::string LossOf(const Json& alert) {
  const double seconds = alert.value("lost", Json::object()).value("seconds", 0.0);
  const std::string time =
      seconds > 0 ? FormatDuration(static_cast<int64_t>(seconds * static_cast<double>(kNsPerSecond))) : "";
  const std::string money = MoneyLost(alert);
  return time + (time.empty() || money.empty() ? "" : ", ") + money;
}

Message MessageOf(const Json& alert) {
  Message message;
  message.over = IsOver(alert);
  message.headline = Cut((message.over ? "Over: " : "Firing: ") + alert.value("alert", ""), kLongestHeadline);
  message.text = Cut(alert.value("what", ""), kLongestText);
  const auto add = [&](const std::string& name, const std::string& text) {
    if (!text.empty() && message.facts.size() < kMostFacts)
      message.facts.push_back({name, Cut(text, kLongestValue)});
  };
  add("Run", alert.value("run", ""));
  add("Stage", alert.value("stage", ""));
  add("Host", alert.value("host", ""));
  if (alert.contains("since_unix_ns"))
    add("Since (UTC)", FormatUtc(alert.value("since_unix_ns", int64_t{0})));
  if (message.over) add("Ended (UTC)", FormatUtc(alert.value("resolved_unix_ns", int64_t{0})));
  add("Why it is over", alert.value("end", ""));
  add("Lost", LossOf(alert));
  if (const auto fix = alert.value("fix", Json::array()); !fix.empty()) add("What to do", fix.front());
  for (const std::string& line : EvidenceOf(alert)) add("Evidence", line);
  return message;
}

// Slack's own marks, with which a text would call a whole channel.
std::string SlackEscaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&') escaped += "&amp;";
    if (c == '<') escaped += "&lt;";
    if (c == '>') escaped += "&gt;";
    if (c != '&' && c != '<' && c != '>') escaped += c;
  }
  return escaped;
}

std::string MarkdownEscaped(std::string_view text) {
  constexpr std::string_view kMarks = "\\*_~`|>#[]()<:-";
  std::string escaped;
  for (const char c : text) {
    if (kMarks.find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// A chat refuses a text without a character.
std::string OrBlank(std::string text) { return text.empty() ? "-" : text; }

}  // namespace

Json ForAlertmanager(const Json& alert, int64_t wall_ns) {
  std::string description;
  for (const std::string& line : EvidenceOf(alert)) description += line + "\n";
  Json annotations = {{"summary", alert.value("what", "")}};
  if (!description.empty()) annotations["description"] = description;
  if (const auto fix = alert.value("fix", Json::array()); !fix.empty()) annotations["fix"] = fix.front();
  if (const std::string money = MoneyLost(alert); !money.empty()) annotations["lost"] = money;
  return Json::array({{{"labels",
                        {{"alertname", alert.value("alert", "")},
                         {"run", alert.value("run", "")},
                         {"stage", alert.value("stage", "")},
                         {"instance", alert.value("host", "")}}},
                       {"annotations", annotations},
                       {"startsAt", Rfc3339(alert.value("fired_unix_ns", wall_ns))},
                       {"endsAt", Rfc3339(IsOver(alert) ? alert.value("resolved_unix_ns", wall_ns)
                                                        : wall_ns + kTrustedForNs)}}});
}

Json ForSlack(const Json& alert) {
  const Message message = MessageOf(alert);
  const auto plain = [](const std::string& text) {
    return Json{{"type", "plain_text"}, {"text", OrBlank(text)}, {"emoji", false}};
  };
  Json fields = Json::array();
  for (const Fact& fact : message.facts) fields.push_back(plain(fact.name + ": " + fact.text));
  Json blocks = {{{"type", "header"}, {"text", plain(message.headline)}},
                 {{"type", "section"}, {"text", plain(message.text)}}};
  if (!fields.empty()) blocks.push_back({{"type", "section"}, {"fields", fields}});
  // `text` is what a notification says.
  return {{"text", SlackEscaped(message.headline + ". " + message.text)}, {"blocks", blocks}};
}

Json ForTeams(const Json& alert) {
  const Message message = MessageOf(alert);
  // Runs of text, because only these are not read as Markdown.
  const auto line = [](Json inlines) {
    return Json{{"type", "RichTextBlock"}, {"inlines", std::move(inlines)}};
  };
  const auto run = [](const std::string& text) { return Json{{"type", "TextRun"}, {"text", OrBlank(text)}}; };
  Json headline = run(message.headline);
  headline.update({{"weight", "Bolder"}, {"size", "Medium"}, {"color", message.over ? "Good" : "Attention"}});
  Json body = Json::array({line(Json::array({headline})), line(Json::array({run(message.text)}))});
  for (const Fact& fact : message.facts) {
    Json name = run(fact.name + ": ");
    name["weight"] = "Bolder";
    body.push_back(line(Json::array({name, run(fact.text)})));
  }
  Json card = {{"$schema", "http://adaptivecards.io/schemas/adaptive-card.json"},
               {"type", "AdaptiveCard"},
               {"version", "1.4"},
               {"body", body}};
  Json attachment = {{"contentType", "application/vnd.microsoft.card.adaptive"}, {"content", card}};
  return {{"type", "message"}, {"attachments", Json::array({attachment})}};
}

Json ForDiscord(const Json& alert) {
  const Message message = MessageOf(alert);
  Json fields = Json::array();
  for (const Fact& fact : message.facts)
    fields.push_back({{"name", fact.name}, {"value", MarkdownEscaped(fact.text)}, {"inline", false}});
  Json embed = {{"title", MarkdownEscaped(message.headline)},
                {"description", MarkdownEscaped(OrBlank(message.text))},
                {"color", message.over ? kGreen : kRed},
                {"fields", fields}};
  return {{"embeds", Json::array({embed})}, {"allowed_mentions", {{"parse", Json::array()}}}};
}

}  // namespace fullbore::watch
