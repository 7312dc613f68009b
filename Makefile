# `make` or `make help` lists what there is. Every target installs what it needs: a machine with Rust
# (rustup), Python 3 and, for `race`, Debian's packages is enough.

CARGO_DENY := 0.20.2
CARGO_LLVM_COV := 0.9.1
ROUNDS ?= 5
# The seed of every property test in `test`: each run draws the same cases, and the failures recorded beside the tests.
# `fuzz` draws its own.
SEED ?= 1

# Cargo with its own progress on a terminal, and with a line every ten seconds elsewhere; other commands likewise.
CARGO := scripts/progress.py cargo
LONG := scripts/progress.py

# The modules that the API reference of Python has.
PYTHON_MODULES := comity comity.errors comity.events comity.gym comity.plot comity.quantity comity.reproduction comity.suites

.DEFAULT_GOAL := help
.PHONY: help demo demo-sim claims report suites picture test guides install-c kernel lint docs docs-python bench race media worlds compare video deadline attack coverage verify load endurance fuzz fuzz-short

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# `demo`, `test` and `guides` share what they build. What is built once needs no incremental state and no lines in
# backtraces; a crate in one part compiles in less time in all, and runs faster.
demo picture test guides: export CARGO_INCREMENTAL := 0
demo picture test guides: export CARGO_PROFILE_DEV_DEBUG := 0
demo picture test guides: export CARGO_PROFILE_DEV_CODEGEN_UNITS := 1

# The program without the laboratory is built in two thirds of the time. The demo computes so little, half of a
# processor, that an optimised build would cost it more than it saves.
DEMO := --no-default-features --features demo
# Code 3: the machine was too busy for a result to trust. The demo has said so and written its page: nothing failed.
QUICKLY := --config profile.dev.opt-level=0 --config profile.dev.package.comity-sim.opt-level=0
demo: rust python ## send video with deadlines beside TCP-like flows, over Comity, SRT and TCP, and write target/demo.html about it
	$(CARGO) build --package comity-cli $(DEMO) $(QUICKLY)
	@mkdir -p target
	cargo run --quiet --package comity-cli $(DEMO) $(QUICKLY) -- demo --report target/demo.html || [ $$? -eq 3 ]

demo-sim: rust python ## simulate 30 TCP flows through one bottleneck and print what they got
	$(CARGO) build --profile quick --package comity-cli
	cargo run --quiet --profile quick --package comity-cli -- sim run experiments/demo/dumbbell.toml

claims: rust python ## say which claims of the papers hold (CLAIMS='--full libra')
	scripts/python.sh comity.reproduction $(CLAIMS)

report: rust python ## the same with pictures, as one page: target/reproduction.html (CLAIMS='--full')
	@mkdir -p target
	scripts/python.sh comity.reproduction --report target/reproduction.html $(CLAIMS)
	@echo "the page: target/reproduction.html"

suites: rust python ## run the test cases of RFC 8867 and RFC 9743 with every controller (SUITES='--full rfc8867 --report target/suites.html')
	scripts/python.sh comity.suites $(SUITES)

picture: rust python ## run the demo and keep its timeline as docs/demo.svg and its numbers in docs/reference/demo.md
	$(CARGO) build --package comity-cli
	python3 scripts/demo.py target/debug/comity

test: rust python ## run every test of the workspace and of the scripts beside it, on the same cases each time (SEED=1 FAILED=1)
	@command -v ffmpeg >/dev/null || echo "no ffmpeg: the tests that compare with it skip; with COMITY_NEED_FFMPEG=1 they fail"
	@command -v tshark >/dev/null || echo "no tshark: the tests of tools/wireshark/comity.lua skip"
	@[ "$$(id -u)" -ne 0 ] || scripts/need.sh ip apt:iproute2 || true
	@[ "$$(id -u)" -eq 0 ] && [ -c /dev/net/tun ] && command -v ip >/dev/null || \
		echo "no root, /dev/net/tun or ip: the tests of the lab skip; with COMITY_NEED_LAB=1 they fail"
	PROPTEST_RNG_SEED=$(SEED) scripts/tests.py $(if $(FAILED),--failed)

guides: rust python ## run the commands of docs/guide as a reader would, in one folder, and compare what they print
	$(CARGO) build --package comity-cli
	[ -e target/python-venv ] || scripts/python.sh
	scripts/guides.py

kernel: rust python ## test TCP Libra and TCP-Real in the running kernel, as root, where the kernel has BTF
	scripts/kernel.sh || [ $$? -eq 77 ]

lint: format clippy docs purity language growth promises dependencies advisories ## check format, lints, docs, purity, words, lines, licences and dependencies

install-c: rust python ## build the C library, and install it (PREFIX=/usr/local LIBDIR= DESTDIR=)
	scripts/install-c.sh

docs: rust python ## build the documentation of all crates (target/doc)
	RUSTDOCFLAGS=-Dwarnings $(CARGO) doc --workspace --no-deps

docs-python: rust python ## build the API reference of the Python package (target/python-doc)
	scripts/python.sh pdoc --docformat google --no-show-source --output-directory target/python-doc $(PYTHON_MODULES)

bench: rust python ## run the micro-benchmarks
	$(CARGO) bench --workspace

race: rust python ## race the simulator against ns-2 on the same networks (ROUNDS=5)
	scripts/need.sh ns apt:ns2
	$(CARGO) build --release --package comity-cli
	$(LONG) python3 benches/race/race.py --rounds $(ROUNDS)

media: rust python ## send real video over bad paths and hold what arrives against what was sent, with ffmpeg
	-scripts/need.sh ffmpeg apt:ffmpeg
	$(CARGO) build --release --package comity-cli
	$(LONG) python3 benches/media/media.py

WORLDS = $(if $(QUICK),--quick) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(JOBS),--jobs $(JOBS)) $(if $(ONLY),--only $(ONLY),--page docs/results/worlds.md) \
	--command 'make worlds$(if $(QUICK), QUICK=1)$(if $(SEEDS), SEEDS=$(SEEDS))'
worlds: rust python ## run scenarios in the simulator and beside kernel TCP, as root (SEEDS=1-3 ONLY='tcp-*' QUICK=1 JOBS=6)
	$(CARGO) build --release --package comity-cli
	$(LONG) python3 benches/worlds/worlds.py $(WORLDS)

compare: rust python ## send the same frames through Comity, SRT, TCP and QUIC beside kernel TCP, as root, and real video (COMPARE='--set all --page --readme')
	scripts/need.sh srt-live-transmit apt:srt-tools
	$(CARGO) build --release --package comity-cli
	$(CARGO) build --release --manifest-path benches/compare/Cargo.toml
	$(LONG) python3 benches/compare/compare.py $(COMPARE)
	$(MAKE) video

video: rust python ## send real video through Comity, SRT and RIST over short faults and from cold starts (VIDEO='--random 200 --page')
	scripts/need.sh ffmpeg apt:ffmpeg
	scripts/need.sh srt-live-transmit apt:srt-tools
	scripts/need.sh ristsender apt:rist-tools
	$(CARGO) build --release --package comity-cli
	$(LONG) python3 benches/video/video.py $(VIDEO)

load: rust python ## serve 10,000 peers of 100 kb/s from one listener, and more in virtual time (PEERS=10000 SIMULATED='10000 50000')
	$(CARGO) bench --package comity --bench load -- $(PEERS)
	$(CARGO) bench --package comity --bench load -- --simulated $(SIMULATED)

endurance: rust python ## run a day of virtual time and an hour of real time while faults are injected (HOURS=24 MINUTES=60)
	COMITY_ENDURANCE_HOURS=$(or $(HOURS),24) $(CARGO) test --release --package comity --test endurance -- --ignored --nocapture
	$(CARGO) build --release --package comity-cli
	$(LONG) python3 benches/endurance/endurance.py --minutes $(or $(MINUTES),60) || [ $$? -eq 77 ]

deadline: rust python ## make docs/results/deadline.md: punctuality and friendliness in the simulator
	$(CARGO) build --release --package comity-cli
	$(LONG) python3 benches/deadline/deadline.py --page

attack: rust python ## attack the command on loopback and hold every outcome against the threat model (ATTACK='--only floors --page')
	$(CARGO) build --release --package comity-cli
	$(CARGO) build --release --manifest-path benches/attack/Cargo.toml
	$(LONG) python3 benches/attack/attack.py $(ATTACK)

coverage: rust python ## run every test with counters, and print the share of the code that each crate's tests reach
	scripts/need.sh cargo-llvm-cov cargo:cargo-llvm-cov@$(CARGO_LLVM_COV)
	scripts/coverage.sh

verify: rust python ## check all cases of small domains, every interleaving of threads, the codec beside another one, and the pure crates in Miri: an hour (PARTS='models codec loom' MINUTES=60)
	scripts/verify.sh || [ $$? -eq 77 ]

fuzz: rust python ## run the property tests on new cases, and all fuzz targets for 30 minutes (CASES=2000 MINUTES=30)
	scripts/fuzz.sh || [ $$? -eq 77 ]

fuzz-short: rust python ## build the fuzz targets and run each for 5 s, where a nightly compiler and cargo-fuzz are
	scripts/fuzz.sh --short || [ $$? -eq 77 ]

.PHONY: format clippy purity language growth promises dependencies advisories rust python
format: rust
	cargo fmt --all --check

clippy: rust python
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy --package comity-cli --no-default-features -- -D warnings
	$(CARGO) clippy --package comity-cli $(DEMO) -- -D warnings

purity: rust python
	scripts/purity.sh

language: python
	scripts/vocabulary.py

growth: python
	scripts/growth.py

promises: python
	scripts/promises.py

dependencies: rust python
	scripts/need.sh cargo-deny cargo:cargo-deny@$(CARGO_DENY)
	$(CARGO) deny check licenses bans sources

advisories: rust
	scripts/need.sh cargo-deny cargo:cargo-deny@$(CARGO_DENY)
	scripts/advisories.sh || [ $$? -eq 77 ]

rust:
	@scripts/need.sh cargo none

python:
	@scripts/need.sh python3 apt:python3
