# `flows` greedy TCP flows through one bottleneck, starting at random within the first second. Prints the
# drops at the bottleneck and the packets sent and sent again from 0 to `seconds`, the drops after `warm`
# seconds, and, sorted, the packets that each flow delivered in order after `warm` seconds.
source [file join [file dirname [info script]] lib.tcl]
options {name - flows 30 variant reno window 10 wire 1500 rate 1.5Mb delay 20ms buffer 400
         access 10Mb access_delay 2ms seconds 500 warm 50 seed 1}
only_ip_and_tcp
set sim [new Simulator]
set starts [stream $opt(seed) starts]
ns-random $opt(seed)
set left [$sim node]
set right [$sim node]
pair $sim $left $right $opt(rate) $opt(delay) $opt(buffer) 100000
set monitor [$sim monitor-queue $left $right ""]
for {set i 0} {$i < $opt(flows)} {incr i} {
    set from [$sim node]
    set to [$sim node]
    pair $sim $from $left $opt(access) $opt(access_delay) 1000 1000
    pair $sim $right $to $opt(access) $opt(access_delay) 1000 1000
    lassign [connection $sim $from $to $opt(variant) $opt(wire) $opt(window)] sender($i) sink($i)
    [new Application/FTP] attach-agent $sender($i)
    $sim at [$starts uniform 0 1] "$sender($i) send -1"
}
proc note {} {
    global opt sink before monitor drops
    for {set i 0} {$i < $opt(flows)} {incr i} { set before($i) [$sink($i) set bytes_] }
    set drops [$monitor set pdrops_]
}
proc report {} {
    global opt sender sink before monitor drops
    set sent 0
    set again 0
    set delivered {}
    for {set i 0} {$i < $opt(flows)} {incr i} {
        incr sent [$sender($i) set ndatapack_]
        incr again [$sender($i) set nrexmitpack_]
        lappend delivered [expr {int(([$sink($i) set bytes_] - $before($i)) / $opt(wire))}]
    }
    set total [$monitor set pdrops_]
    puts "$opt(name) $opt(seed) $total [expr {int($total - $drops)}] $sent $again [lsort -integer $delivered]"
    exit 0
}
$sim at $opt(warm) note
$sim at $opt(seconds) report
$sim run
