#!/usr/bin/env bash
# Installs what the programs of bench/accuracy/language train with (Transformers, TRL, accelerate), into build/language;
# quick when nothing is missing. `exam.py language` runs them there.
source "$(dirname "$0")/lib.sh"

cd "$root"
# shellcheck disable=SC2046  # several words
tools_at build/language scripts/requirements-language.txt "the exam's programs that train language models" $(torch_index)
