# A file of 3591 segments over a link that loses packets with probability `loss` while it is on; on and off
# spells last a second in the mean. Prints when the last segment was acknowledged, in seconds, the packets
# sent, those sent again, the timeouts, and the drops at the queue.
source [file join [file dirname [info script]] lib.tcl]
options {variant reno loss 0.05 rate 1.9Mb window 24 buffer 10 way forth seed 1}
tcp_defaults 2000
Agent/TCP set tcpTick_ 0.5
Agent/TCP set minrto_ 1
set sim [new Simulator]
ns-random $opt(seed)
set spells [stream $opt(seed) spells]
set chance [stream $opt(seed) chance]
set a [$sim node]
set b [$sim node]
pair $sim $a $b $opt(rate) 15ms $opt(buffer) 10000
set monitor [$sim monitor-queue $a $b ""]
lassign [connection $sim $a $b $opt(variant) 1500 $opt(window)] sender sink
set uniform [new RandomVariable/Uniform]
$uniform use-rng $chance
set losses [new ErrorModel]
$losses unit pkt
$losses ranvar $uniform
$losses drop-target [new Agent/Null]
if {$opt(way) eq "forth"} { $sim link-lossmodel $losses $a $b } else { $sim link-lossmodel $losses $b $a }
proc spell {is_on} {
    global sim losses spells opt
    $losses set rate_ [expr {$is_on ? $opt(loss) : 0}]
    $sim after [$spells exponential] "spell [expr {!$is_on}]"
}
Agent/TCP instproc done {} {
    global sim opt sender monitor
    puts "$opt(variant) $opt(way) $opt(loss) $opt(seed) [format %.6f [$sim now]] [$sender set ndatapack_]\
        [$sender set nrexmitpack_] [$sender set nrexmit_] [$monitor set pdrops_]"
    exit 0
}
$losses set rate_ 0
if {$opt(loss) > 0} { $sim at 0 "spell 1" }
$sim at 0 "$sender advanceby 3591"
$sim run
