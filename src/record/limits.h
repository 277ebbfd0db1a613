// How much of a file somebody else wrote is believed. Everything here is far above what a recorder of ours
// writes; what exceeds it is damage or malice, and is left out as damage is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fullbore::record {

// A live run is copied to be read (snapshot.h). An hour of recording takes a few megabytes; a sparse file can
// claim terabytes, which would fill the disk for temporary files.
inline constexpr int64_t kMaxCopiedBytes = int64_t{4} << 30;

// SQLite: the longest text or blob of a row. A block of readings takes some kilobytes; a text of a trace
// less. More would be taken into memory by one value.
inline constexpr int kMaxValueBytes = 64 << 20;

// SQLite: pages of a crafted file can refer to one another so that some kilobytes hold rows without end. What
// reading may take is therefore tied to the size of the file: a row takes more than ten bytes, and less than
// forty steps of SQLite's virtual machine even where it is sorted; every byte is read twice at most.
inline constexpr int64_t kStepsPerByte = 32, kFreeSteps = 10'000'000;
inline constexpr int64_t kReadsPerByte = 4, kFreeBytes = 16 << 20;

}  // namespace fullbore::record
