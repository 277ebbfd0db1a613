// An alert ("fullbore.alert/1") in the forms that others take: Alertmanager, and chats. Pure.
//
// What an alert says comes from outside: names of runs, lines of scripts. In a chat it is text and nothing else: it
// mentions nobody, links nowhere, and is as long as the chat takes.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

namespace fullbore::watch {

// What Alertmanager's v2 API takes: a list of alerts, here of one. A firing one counts as over five minutes after it
// was last said, in case nobody is left to say so.
nlohmann::ordered_json ForAlertmanager(const nlohmann::ordered_json& alert, int64_t wall_ns);

// What an incoming webhook of Slack takes: blocks of plain text.
nlohmann::ordered_json ForSlack(const nlohmann::ordered_json& alert);
// What a workflow "when a Teams webhook request is received" takes: a message with an Adaptive Card.
nlohmann::ordered_json ForTeams(const nlohmann::ordered_json& alert);
// What a webhook of Discord takes: an embed.
nlohmann::ordered_json ForDiscord(const nlohmann::ordered_json& alert);

}  // namespace fullbore::watch
