// What the recording of the script as it is tells the search.
#pragma once

#include "record/recording.h"
#include "tune/search/search.h"

namespace fullbore::tune {

// The result holds no reference to the recording.
Known KnownFrom(const record::Recording& recording);

}  // namespace fullbore::tune
