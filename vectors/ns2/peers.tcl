# 16 SACK TCP and 16 RAP or TFRC flows through one bottleneck, starting at random within the first second. Every flow's
# access links have a delay of their own, drawn from 1 to 9 ms: with equal ones, the moment at which TCP's segments
# arrive within the time that the bottleneck takes for a packet decides who finds its buffer full. Prints the mean rates
# of TCP and of the others after `warm` seconds, in bits on the wire a second, and the drops at the bottleneck since then.
# `timeout` is the least t_RTO of TFRC's equation, in seconds; its clock is fine enough to have no say.
source [file join [file dirname [info script]] lib.tcl]
options {name - law rap buffer 400 seconds 500 warm 50 seed 1 wire 1500 timeout 12}
Agent/TFRC set minrto_ $opt(timeout)
Agent/TFRC set tcp_tick_ 0.001
set sim [new Simulator]
set starts [stream $opt(seed) starts]
set delays [stream $opt(seed) delays]
ns-random [expr {$opt(seed) * 7919 + 12345}]
set left [$sim node]
set right [$sim node]
pair $sim $left $right 1.5Mb 20ms $opt(buffer) 100000
set queue [$sim monitor-queue $left $right ""]
for {set i 0} {$i < 32} {incr i} {
    set from [$sim node]
    set to [$sim node]
    set delay [$delays uniform 0.001 0.009]
    pair $sim $from $left 10Mb $delay 1000 1000
    pair $sim $right $to 10Mb $delay 1000 1000
    set at [$starts uniform 0 1]
    if {$i < 16} {
        lassign [connection $sim $from $to sack $opt(wire) 1000] sender
        [new Application/FTP] attach-agent $sender
        $sim at $at "$sender send -1"
    } else {
        set sender [rate_connection $sim $from $to $opt(law) $opt(wire)]
        $sim at $at "$sender start"
    }
    set arrivals($i) [$sim monitor-queue $right $to ""]
}
$sim at $opt(warm) {
    for {set i 0} {$i < 32} {incr i} { set before($i) [$arrivals($i) set bdepartures_] }
    set drops [$queue set pdrops_]
}
$sim at $opt(seconds) {
    array set sum {tcp 0 other 0}
    for {set i 0} {$i < 32} {incr i} {
        set kind [expr {$i < 16 ? "tcp" : "other"}]
        set sum($kind) [expr {$sum($kind) + [$arrivals($i) set bdepartures_] - $before($i)}]
    }
    set scale [expr {8.0 / 16 / ($opt(seconds) - $opt(warm))}]
    puts [format "%s %d %.1f %.1f %d" $opt(name) $opt(seed) [expr {$sum(tcp) * $scale}] \
        [expr {$sum(other) * $scale}] [expr {int([$queue set pdrops_] - $drops)}]]
    exit 0
}
$sim run
