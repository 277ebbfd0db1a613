#include "base/testing/source_directory.h"

namespace fullbore::testing {

std::string SourceDirectory() { return FULLBORE_SOURCE_DIR; }

}  // namespace fullbore::testing
