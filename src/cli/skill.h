// The skill's page for coding agents, docs/skill/SKILL.md: what to ask first, and what never to claim. Made from the
// tables that --help, `fullbore mcp` and `fullbore help` are made from, so that it names nothing that does not exist:
//
//   $ fullbore __skill > docs/skill/SKILL.md
#pragma once

#include <string>
#include <string_view>

namespace fullbore::cli {

inline constexpr std::string_view kSkillCall = "__skill";

std::string SkillPage();  // Markdown

}  // namespace fullbore::cli
