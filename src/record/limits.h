// How far a file that somebody else wrote is believed. Every limit is far above what our recorder writes;
// anything beyond it is damage or malice, and is left out as damage is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fullbore::record {

// A live run is copied before it is read (snapshot.h). An hour of recording takes a few megabytes, but a
// sparse file can claim terabytes, which would fill the disk that holds temporary files.
inline constexpr int64_t kMaxCopiedBytes = int64_t{4} << 30;

// SQLite: the longest text or blob of a row. A block of readings takes some kilobytes, a text in a trace
// less. Without a limit a single value could exhaust the memory.
inline constexpr int kMaxValueBytes = 64 << 20;

// SQLite: the pages of a crafted file can refer to one another, so that a few kilobytes hold endless rows.
// The work of reading is therefore tied to the size of the file: a row takes more than ten bytes, and fewer
// than forty steps of SQLite's virtual machine even when sorted; every byte is read at most twice.
inline constexpr int64_t kStepsPerByte = 32, kFreeSteps = 10'000'000;
inline constexpr int64_t kReadsPerByte = 4, kFreeBytes = 16 << 20;

// JSON is parsed without recursion, but printed and copied with it: a million levels of nesting would
// overflow the stack. Ours nests four levels deep.
inline constexpr int kMaxJsonDepth = 32;

// A block of columns is decompressed into memory as a whole. The largest that a recorder writes, after hours
// with a full disk, holds 16,384 rows of about a hundred series; the values of a block take 64 MB.
inline constexpr size_t kMaxBlockBytes = 64u << 20;
inline constexpr size_t kMaxColumnsOfBlock = 1u << 16, kMaxRowsOfBlock = 1u << 16,
                        kMaxValuesOfBlock = 8u << 20;
// All blocks of a file: a row of zeros compresses to next to nothing, and so do a million of them. A
// recorder's blocks hold fewer than four values per byte.
inline constexpr int64_t kValuesPerByte = 32, kFreeValues = 16 << 20;

// Each lookup goes through all of them. A run has a stage per command, a stage has a rank per training
// process on the machine and a loader per call of DataLoader().
inline constexpr size_t kMaxStages = 1000, kMaxRanks = 1024, kMaxLoaders = 1000;

// Machines of one run. The largest trainings that were reported have some thousands.
inline constexpr size_t kMaxNodes = 4096, kMaxRanksOfNodes = 1 << 16;

// The number of a rank within the whole job; -1 is a process without one.
inline constexpr int64_t kMaxRankNumber = (1 << 24) - 1;

// No time and no sum of durations exceeds 36 years: their differences and sums then fit into 64
// bits, whatever the file says.
inline constexpr int64_t kMaxNs = int64_t{1} << 60;
inline constexpr int64_t kMaxWallOffsetNs = int64_t{6} << 60;  // Unix time, until the year 2189

// Steps, samples, batches, bytes: nothing is ever counted beyond 2^50, and sums of such counts fit as well.
inline constexpr int64_t kMaxCount = int64_t{1} << 50;

// Of a reading: bytes, bytes per second, degrees, watts.
inline constexpr double kMaxReading = 1e18;

// Diagnosis fetches a batch once per worker when it replays a step.
inline constexpr int32_t kMaxBatchesOfStep = 1 << 12;

// Diagnosis replays a loader with every number of workers up to the recorded one.
inline constexpr int64_t kMaxWorkers = 4096;

}  // namespace fullbore::record
