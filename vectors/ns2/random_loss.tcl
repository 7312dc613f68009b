# One RAP or TFRC flow over 100 Mb/s, 50 ms each way, that loses each packet with probability `loss`. Prints the packets
# that left in a second, from `warm` to `seconds`. `timeout` is the least t_RTO of TFRC's equation, in seconds; its clock
# is fine enough to have no say.
source [file join [file dirname [info script]] lib.tcl]
options {name - law rap loss 0.01 seconds 1000 warm 100 seed 1 wire 1500 timeout 0.4}
Agent/TFRC set minrto_ $opt(timeout)
Agent/TFRC set tcp_tick_ 0.001
set sim [new Simulator]
ns-random [expr {$opt(seed) * 7919 + 12345}]
set from [$sim node]
set to [$sim node]
pair $sim $from $to 100Mb 50ms 10000 10000
set errors [new ErrorModel]
$errors unit pkt
$errors set rate_ $opt(loss)
set draws [new RandomVariable/Uniform]
$draws use-rng [stream $opt(seed) errors]
$draws set min_ 0
$draws set max_ 1
$errors ranvar $draws
$errors drop-target [new Agent/Null]
$sim link-lossmodel $errors $from $to
set sender [rate_connection $sim $from $to $opt(law) $opt(wire)]
set monitor [$sim monitor-queue $from $to ""]
$sim at 0.0 "$sender start"
$sim at $opt(warm) { set before [$monitor set pdepartures_] }
$sim at $opt(seconds) {
    set sent [expr {[$monitor set pdepartures_] - $before}]
    puts "$opt(name) $opt(seed) [expr {double($sent) / ($opt(seconds) - $opt(warm))}]"
    exit 0
}
$sim run
