# Publish the transforms of a robot's frames, fifty times a second, for some seconds.
use strict;
use warnings;
use Time::HiRes qw(time);

my $seconds = shift;
my $end     = time + $seconds;
my $pad     = 'p' x 6000;
binmode STDOUT;
$| = 1;
while ((my $now = time) < $end) {
    my $out = '';
    for my $frame (0 .. 39) {
        $out .= pack 'NdN', $frame, $now, 6000;
        $out .= $pad;
    }
    print $out or exit 0;
    select undef, undef, undef, 0.02;
}
