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

// JSON is read without recursion, but printed and copied with it: nested by the million it ends the process.
// Ours nests four deep.
inline constexpr int kMaxJsonDepth = 32;

// A block of columns is decompressed into memory as a whole. The largest that a recorder writes holds 16,384
// rows of some hundred series, after hours of a full disk; the values of a block take 64 MB.
inline constexpr size_t kMaxBlockBytes = 64u << 20;
inline constexpr size_t kMaxColumnsOfBlock = 1u << 16, kMaxRowsOfBlock = 1u << 16,
                        kMaxValuesOfBlock = 8u << 20;
// All blocks of a file: a row of zeros compresses to next to nothing, a million of them do, too. A recorder's
// blocks hold fewer than four values a byte.
inline constexpr int64_t kValuesPerByte = 32, kFreeValues = 16 << 20;

// Each is looked up by going through all of them. A run has a stage a command, and a rank a process of one
// machine; a loader a call of DataLoader().
inline constexpr size_t kMaxStages = 1000, kMaxRanks = 1024, kMaxLoaders = 1000;

// The number of a rank in a whole job. -1 is a process that is none.
inline constexpr int64_t kMaxRankNumber = (1 << 24) - 1;

// No moment and no sum of durations is further away than 36 years: differences and sums of them then fit into
// 64 bits, whatever the file says.
inline constexpr int64_t kMaxNs = int64_t{1} << 60;
inline constexpr int64_t kMaxWallOffsetNs = int64_t{6} << 60;  // Unix time, until the year 2189

// Steps, samples, batches, bytes: more than 2^50 of anything was not counted, and sums of them fit as well.
inline constexpr int64_t kMaxCount = int64_t{1} << 50;

// Of what was read: bytes, bytes a second, degrees, watts.
inline constexpr double kMaxReading = 1e18;

// A batch is fetched again for each of them when diagnosis replays a step.
inline constexpr int32_t kMaxBatchesOfStep = 1 << 12;

// Diagnosis replays a loader with every number of workers up to the one recorded.
inline constexpr int64_t kMaxWorkers = 4096;

}  // namespace fullbore::record
