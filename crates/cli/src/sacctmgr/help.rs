//! What `sacctmgr --help` says.
pub const TEXT: &str = "\
sacctmgr [<OPTION>] [<COMMAND>]
    Valid <OPTION> values are:
     -h or --help: this text
     -i or --immediate: commit changes immediately
     --json[=PARSER], --yaml[=PARSER]: entities that are listed as JSON or YAML
     -n or --noheader: no heading above what is listed
     -o or --oneliner: one record a line, as always
     -p or --parsable: fields with a '|' after each
     -P or --parsable2: fields with a '|' between
     -Q or --quiet: say only what went wrong
     -r or --readonly: change nothing
     -s or --associations: users and accounts with their associations
     -v or --verbose: say more
     -V or --version: display tool version number

  Without a command, commands are read from the standard input, one a line,
  until quit.

  Valid <COMMAND> values are:
     add <ENTITY> <SPECS>     new entities
     associations             the same as -s
     clear stats              count calls from now on
     delete <ENTITY> <SPECS>  take entities out
     dump <CLUSTER> [File=<FILENAME>]
                              write the tree of a cluster to a file
     exit, quit               leave
     help                     this text
     list <ENTITY> [<SPECS>]  show entities; show is the same
     load <FILE> [<SPECS>]    make the tree what a file says; cluster= names
                              another cluster than the file, clean takes out
                              first what is there
     modify <ENTITY> <SPECS>  where CONDITIONS set VALUES
     ping                     whether accounts are kept
     version                  the same as -V

  One of <ENTITY> may be \"account\", \"association\", \"cluster\",
                  \"configuration\", \"coordinator\", \"event\",
                  \"job\", \"problem\", \"qos\", \"reservation\",
                  \"resource\", \"runawayjobs\", \"stats\", \"transaction\",
                  \"tres\", \"user\" or \"wckey\"

  <SPECS> are different for each command entity pair.
       list account       - Clusters=, Descriptions=, Format=, Names=,
                            Organizations=, Parents=, WithAssoc, WithCoordinators
       add account        - Clusters=, Description=, Names=, Organization=, Parent=
                            and values of associations
       modify account     - the same, and RawUsage=0
       delete account     - Clusters=, Descriptions=, Names=, Organizations=, Parents=

       list associations  - Accounts=, Clusters=, Format=, ID=, OnlyDefaults,
                            Partitions=, Parent=, Tree, Users=, WithSubAccounts,
                            WOLimits, WOPInfo

       list cluster       - Format=, Names=
       add cluster        - Name= and values of associations
       modify cluster     - values of associations
       delete cluster     - Names=

       add coordinator    - Accounts=, Names=
       delete coordinator - Accounts=, Names=

       list events        - All_Time, End=, Format=, Nodes=, Reason=, Start=,
                            States=, User=

       list qos           - Format=, Id=, Names=
       add qos            - Description=, Flags=, GraceTime=, GrpJobs=, GrpJobsAccrue=,
                            GrpSubmitJob=, GrpTRES=, GrpTRESMins=, GrpTRESRunMins=,
                            GrpWall=, LimitFactor=, MaxJobsPerAccount=,
                            MaxJobsPerUser=, MaxSubmitJobsPerAccount=,
                            MaxSubmitJobsPerUser=, MaxTRESMins=, MaxTRESPerAccount=,
                            MaxTRESPerJob=, MaxTRESPerNode=, MaxTRESPerUser=,
                            MaxWall=, MinPrioThresh=, MinTRESPerJob=, Names=,
                            Preempt=, PreemptExemptTime=, PreemptMode=, Priority=,
                            UsageFactor=, UsageThreshold=
       modify qos         - the same, and RawUsage=0
       delete qos         - Names=

       list resource      - Clusters=, Descriptions=, Format=, Ids=, Names=,
                            PercentAllowed=, Server=, ServerType=, WithClusters
       add resource       - Clusters=, Count=, Description=, Names=,
                            PercentAllowed=, Server=, ServerType=, Type=License
       modify resource    - Count=, Description=, PercentAllowed=, ServerType=
                            where any condition of list
       delete resource    - any condition of list

       list runawayjobs   - Format=
       list stats
       list transactions  - Accounts=, Action=, Actor=, End=, Format=, ID=, Start=,
                            Users=
       list tres

       list user          - AdminLevel=, DefaultAccount=, Format=, Names=,
                            WithAssoc, WithCoordinators
       add user           - Accounts=, AdminLevel=, Clusters=, DefaultAccount=,
                            DefaultWCKey=, Names=, Partitions=, WCKeys=
                            and values of associations
       modify user        - the same, NewName= and RawUsage=0
       delete user        - Accounts=, AdminLevel=, Clusters=, DefaultAccount=, Names=

       add wckey          - Clusters=, Names=, Users=
       list wckey         - Clusters=, Format=, Names=, Users=

       values of associations: DefaultQOS=, Fairshare=, GrpJobs=, GrpJobsAccrue=,
                            GrpSubmitJobs=, GrpTRES=, GrpTRESMins=,
                            GrpTRESRunMins=, GrpWall=, MaxJobs=, MaxJobsAccrue=,
                            MaxSubmitJobs=, MaxTRES=, MaxTRESMins=,
                            MaxTRESPerNode=, MaxWall=, MinPrioThresh=, Priority=,
                            QosLevel= (also +=, -=)
";
