"""What an adversary gets, and whether a mechanism keeps what it promises."""
