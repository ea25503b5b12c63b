/*
 * How to look at threads that run: see look.h for what each proves.
 */
#ifndef FM_SAMPLER_WAY_H
#define FM_SAMPLER_WAY_H

enum fm_way {
    FM_WAY_DISPLACE, /* sit on the thread's processor; if that is refused, stop it; if that is
                        refused, plain */
    FM_WAY_STOP,     /* stop the thread by ptrace; if that is refused, plain */
    FM_WAY_PLAIN,    /* just read */
};

#endif
