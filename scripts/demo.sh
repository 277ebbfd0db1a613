#!/usr/bin/env bash
# The demo: train a ResNet on photos with a typical script, let fullbore say what is wrong, measure what its advice brings
# in turns with the script as it is, and compare prediction and outcome. Everything it writes is in .fullbore/demo.
source "$(dirname "$0")/lib.sh"

cd "$root"
scripts/setup.sh demo
scripts/build.sh release fullbore

python="$(demo_python)"
[ -n "$python" ] || die "no Python with torch, numpy and Pillow" "scripts/setup.sh demo"
fullbore=build/release/fullbore
demo=.fullbore/demo

# On a GPU the batches are larger, so the folder must be, too: an epoch is about 60 steps either way.
photos=2000 steps=240
if has_nvidia_gpu; then photos=8000; fi

say "photos, generated once: $demo/photos"
"$python" examples/make_photos.py "$demo/photos" --count "$photos"

training=("$python" examples/train_resnet.py --data "$demo/photos")
endless="$(printf '%q ' "${training[@]}")--steps 1000000"

say "1. the training as it is: DataLoader(num_workers=0)"
"$fullbore" run --name demo -o "$demo/runs" --json "$demo/report.json" --html "$demo/report.html" -- \
  "${training[@]}" --workers 0 --steps "$steps"

workers="$("$python" scripts/demo_report.py workers "$demo/report.json")"
if [ -z "$workers" ]; then
  say "the recommended change is not a number of workers, and this demo applies no other by itself"
  exit 0
fi

say "2. the recommended change, num_workers=$workers, in turns with the training as it is"
rm -f "$demo/proof.json"
# Its status is 1 where there was no time for two pairs, too.
"$fullbore" compare --budget 2m -o "$demo/runs" --json "$demo/proof.json" \
  --baseline "$endless --workers 0" --candidate "$endless --workers $workers" || [ -f "$demo/proof.json" ]
"$python" scripts/demo_report.py table "$demo/report.json" "$demo/proof.json"

say "3. the same, found by itself: fullbore tune tries what the recording says can gain, and proves it"
"$fullbore" tune --knobs num_workers --budget 4m --most 20s -o "$demo/runs" --json "$demo/tune.json" -- \
  "${training[@]}" --workers 0 --steps 1000000
