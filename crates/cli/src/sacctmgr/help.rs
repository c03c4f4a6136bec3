//! What `sacctmgr --help` says.
pub const TEXT: &str = "\
sacctmgr [OPTIONS] COMMAND ENTITY [WORDS]
  -h, --help           this text
  -i, --immediate      changes without asking
  -n, --noheader       no heading
  -p, --parsable       fields with a '|' after each
  -P, --parsable2      fields with a '|' between
  -Q, --quiet          says only what went wrong
  -r, --readonly       refuses to change anything
  -s, --associations   users and accounts with their associations
  -V, --version        the version

Commands:
  add     ENTITY NAMES [KEY=VALUE ...]
  modify  ENTITY where KEY=VALUE ... set KEY=VALUE ...
  delete  ENTITY where KEY=VALUE ...
  list    ENTITY [KEY=VALUE ...] [format=FIELD[%WIDTH],...] [withassoc] [tree]

Entities: account, association, cluster, coordinator, qos, tres, user, wckey
";
