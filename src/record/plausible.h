// Numbers that a recording only claims, as texts: facts about the machine ("cores" -> "8") and about a rank ("torch_threads"
// -> "8"; JSON texts). Diagnosis counts with them, so that one number could make it run for years.
#pragma once

#include <map>
#include <string>

namespace fullbore::record {

// Removes the facts that no machine and no training can have: numbers out of the range of their name, or of any, and
// texts beyond all measure. True if there were some. What is no number stays as it is.
bool LeaveOutImplausible(std::map<std::string, std::string>& facts);

}  // namespace fullbore::record
