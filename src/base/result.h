// Result and Error are part of the public interface; this gives them the names that all of src/ uses.
#pragma once

#include "fullbore/result.h"  // IWYU pragma: export
