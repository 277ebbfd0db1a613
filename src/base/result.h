// Result and errors are part of the public interface; here under the name that all of src/ uses.
#pragma once

#include "fullbore/result.h"  // IWYU pragma: export
