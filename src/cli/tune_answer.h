// What `tune` says in the end, for people: the table and the recommendation, on standard output.
#pragma once

#include "tune/answer/advice.h"

namespace fullbore::cli {

void PrintAnswer(const tune::Answer& answer, const tune::AnswerContext& context);

}  // namespace fullbore::cli
