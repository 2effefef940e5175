/* Writes the same archive as `reference.rs`, with libotf2's writer. Argument: the folder to create. */
#include <otf2/otf2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK( call ) do { if ( ( call ) != OTF2_SUCCESS ) { fprintf( stderr, "%s\n", #call ); exit( 1 ); } } while ( 0 )

static OTF2_FlushType
pre_flush( void* data, OTF2_FileType type, OTF2_LocationRef location, void* caller, bool final )
{
    return OTF2_FLUSH;
}

static OTF2_FlushCallbacks flush = { .otf2_pre_flush = pre_flush, .otf2_post_flush = NULL };

static void
events( OTF2_Archive* archive )
{
    CHECK( OTF2_Archive_OpenEvtFiles( archive ) );
    OTF2_AttributeList* list = OTF2_AttributeList_New();

    /* Every kind of event. */
    OTF2_EvtWriter* w = OTF2_Archive_GetEvtWriter( archive, 0 );
    CHECK( OTF2_EvtWriter_ThreadBegin( w, NULL, 1000, 0, 7 ) );
    CHECK( OTF2_EvtWriter_Enter( w, NULL, 1000, 0 ) );
    CHECK( OTF2_AttributeList_AddUint64( list, 0, 70000 ) );
    CHECK( OTF2_AttributeList_AddInt64( list, 1, -5 ) );
    CHECK( OTF2_AttributeList_AddStringRef( list, 2, 300 ) );
    CHECK( OTF2_AttributeList_AddLocationRef( list, 3, 5 ) );
    CHECK( OTF2_AttributeList_AddDouble( list, 4, 1.5 ) );
    CHECK( OTF2_EvtWriter_Enter( w, list, 2000, 300 ) );
    CHECK( OTF2_EvtWriter_Leave( w, NULL, 2000, 300 ) );
    OTF2_Type        types[]  = { OTF2_TYPE_UINT64, OTF2_TYPE_INT64, OTF2_TYPE_DOUBLE };
    OTF2_MetricValue values[] = { { .unsigned_int = 3 }, { .signed_int = -1 }, { .floating_point = 0.25 } };
    CHECK( OTF2_EvtWriter_Metric( w, NULL, 2500, 1, 3, types, values ) );
    CHECK( OTF2_EvtWriter_ThreadAcquireLock( w, NULL, 2600, OTF2_PARADIGM_PTHREAD, 9, 1 ) );
    CHECK( OTF2_EvtWriter_ThreadReleaseLock( w, NULL, 2700, OTF2_PARADIGM_PTHREAD, 9, 1 ) );
    CHECK( OTF2_EvtWriter_ThreadCreate( w, NULL, 2800, 0, 8 ) );
    CHECK( OTF2_EvtWriter_ThreadWait( w, NULL, 2900, 0, 8 ) );
    CHECK( OTF2_EvtWriter_ThreadFork( w, NULL, 2900, OTF2_PARADIGM_OPENMP, 70000 ) );
    CHECK( OTF2_EvtWriter_ThreadTeamBegin( w, NULL, 2900, 0 ) );
    CHECK( OTF2_EvtWriter_ThreadTeamEnd( w, NULL, 2950, 0 ) );
    CHECK( OTF2_EvtWriter_ThreadJoin( w, NULL, 2950, OTF2_PARADIGM_OPENMP ) );
    CHECK( OTF2_EvtWriter_Leave( w, NULL, 3000, 0 ) );
    CHECK( OTF2_EvtWriter_ThreadEnd( w, NULL, 3000, 0, OTF2_UNDEFINED_UINT64 ) );

    /* Many chunks. */
    OTF2_EvtWriter* many = OTF2_Archive_GetEvtWriter( archive, 5 );
    for ( uint64_t i = 0; i < 200000; i++ )
    {
        CHECK( OTF2_EvtWriter_Enter( many, NULL, 1000 + i * 3 / 4, i % 70001 ) );
    }

    /* A long record; an event at time 0; a location without events. */
    OTF2_EvtWriter* longest = OTF2_Archive_GetEvtWriter( archive, 6 );
    CHECK( OTF2_AttributeList_RemoveAllAttributes( list ) );
    for ( uint32_t i = 0; i < 30; i++ )
    {
        CHECK( OTF2_AttributeList_AddUint64( list, i, UINT64_C( 1 ) << 60 ) );
    }
    CHECK( OTF2_EvtWriter_Enter( longest, list, 1, 0 ) );
    CHECK( OTF2_EvtWriter_Leave( longest, NULL, 1, 0 ) );
    OTF2_EvtWriter* nothing = OTF2_Archive_GetEvtWriter( archive, 8 );

    OTF2_EvtWriter* all[] = { w, many, longest, nothing };
    for ( int i = 0; i < 4; i++ )
    {
        CHECK( OTF2_Archive_CloseEvtWriter( archive, all[ i ] ) );
    }
    CHECK( OTF2_Archive_CloseEvtFiles( archive ) );
}

static void
local_definitions( OTF2_Archive* archive )
{
    static const OTF2_LocationRef locations[] = { 0, 5, 6, 8 };
    CHECK( OTF2_Archive_OpenDefFiles( archive ) );
    for ( int i = 0; i < 4; i++ )
    {
        CHECK( OTF2_Archive_CloseDefWriter( archive, OTF2_Archive_GetDefWriter( archive, locations[ i ] ) ) );
    }
    CHECK( OTF2_Archive_CloseDefFiles( archive ) );
}

static void
definitions( OTF2_Archive* archive )
{
    OTF2_GlobalDefWriter* g = OTF2_Archive_GetGlobalDefWriter( archive );
    CHECK( OTF2_GlobalDefWriter_WriteClockProperties( g, 2500000000, 0, 300000, 1700000000000000000 ) );
    CHECK( OTF2_GlobalDefWriter_WriteString( g, 0, "" ) );
    CHECK( OTF2_GlobalDefWriter_WriteString( g, 1, "name" ) );
    /* Lengths around the limit above which a length takes nine bytes; then strings that fill two chunks. */
    static char name[ 10001 ];
    for ( uint32_t i = 2; i < 600; i++ )
    {
        size_t length = i < 20 ? 240 + i : 10000;
        memset( name, 'x', length );
        snprintf( name, 10, "%09u", i );
        name[ 9 ] = 'x';
        name[ length ] = 0;
        CHECK( OTF2_GlobalDefWriter_WriteString( g, i, name ) );
    }
    CHECK( OTF2_GlobalDefWriter_WriteParadigm( g, OTF2_PARADIGM_PTHREAD, 1, OTF2_PARADIGM_CLASS_THREAD_CREATE_WAIT ) );
    CHECK( OTF2_GlobalDefWriter_WriteAttribute( g, 0, 1, 2, OTF2_TYPE_UINT64 ) );
    CHECK( OTF2_GlobalDefWriter_WriteSystemTreeNode( g, 0, 1, 2, OTF2_UNDEFINED_SYSTEM_TREE_NODE ) );
    CHECK( OTF2_GlobalDefWriter_WriteSystemTreeNode( g, 1, 3, 4, 0 ) );
    CHECK( OTF2_GlobalDefWriter_WriteSystemTreeNodeDomain( g, 0, OTF2_SYSTEM_TREE_DOMAIN_MACHINE ) );
    CHECK( OTF2_GlobalDefWriter_WriteSystemTreeNodeDomain( g, 1, OTF2_SYSTEM_TREE_DOMAIN_SHARED_MEMORY ) );
    CHECK( OTF2_GlobalDefWriter_WriteLocationGroup( g, 0, 1, OTF2_LOCATION_GROUP_TYPE_PROCESS, 0,
                                                    OTF2_UNDEFINED_LOCATION_GROUP ) );
    CHECK( OTF2_GlobalDefWriter_WriteRegion( g, 0, 1, 1, 2, OTF2_REGION_ROLE_ARTIFICIAL,
                                             OTF2_PARADIGM_MEASUREMENT_SYSTEM, OTF2_REGION_FLAG_NONE, 0, 0, 0 ) );
    CHECK( OTF2_GlobalDefWriter_WriteRegion( g, 1, 300, 300, 0, OTF2_REGION_ROLE_UNKNOWN, OTF2_PARADIGM_HARDWARE,
                                             OTF2_REGION_FLAG_NONE, 0, 0, 0 ) );
    CHECK( OTF2_GlobalDefWriter_WriteMetricMember( g, 0, 1, 2, OTF2_METRIC_TYPE_OTHER, OTF2_METRIC_ABSOLUTE_NEXT,
                                                   OTF2_TYPE_UINT64, OTF2_BASE_DECIMAL, 0, 3 ) );
    CHECK( OTF2_GlobalDefWriter_WriteMetricMember( g, 1, 1, 0, OTF2_METRIC_TYPE_OTHER, OTF2_METRIC_ABSOLUTE_POINT,
                                                   OTF2_TYPE_DOUBLE, OTF2_BASE_BINARY, -3, 1 ) );
    OTF2_MetricMemberRef members[] = { 0, 1 };
    CHECK( OTF2_GlobalDefWriter_WriteMetricClass( g, 0, 2, members, OTF2_METRIC_ASYNCHRONOUS,
                                                  OTF2_RECORDER_KIND_ABSTRACT ) );

    CHECK( OTF2_GlobalDefWriter_WriteLocation( g, 0, 1, OTF2_LOCATION_TYPE_CPU_THREAD, 15, 0 ) );
    CHECK( OTF2_GlobalDefWriter_WriteLocation( g, 5, 2, OTF2_LOCATION_TYPE_CPU_THREAD, 200000, 0 ) );
    CHECK( OTF2_GlobalDefWriter_WriteLocation( g, 6, 3, OTF2_LOCATION_TYPE_METRIC, 2, 0 ) );
    CHECK( OTF2_GlobalDefWriter_WriteLocation( g, 8, 4, OTF2_LOCATION_TYPE_UNKNOWN, 0, 0 ) );

    CHECK( OTF2_GlobalDefWriter_WriteMetricInstance( g, 1, 0, 6, OTF2_SCOPE_LOCATION_GROUP, 0 ) );
    CHECK( OTF2_GlobalDefWriter_WriteMetricInstance( g, 2, 0, 6, OTF2_SCOPE_LOCATION, 5 ) );
    uint64_t regions[] = { 0, 300 };
    CHECK( OTF2_GlobalDefWriter_WriteGroup( g, 0, 1, OTF2_GROUP_TYPE_REGIONS, OTF2_PARADIGM_UNKNOWN,
                                            OTF2_GROUP_FLAG_NONE, 2, regions ) );
    uint64_t locations[] = { 0, 5 };
    CHECK( OTF2_GlobalDefWriter_WriteGroup( g, 1, 0, OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_PTHREAD,
                                            OTF2_GROUP_FLAG_NONE, 2, locations ) );
    uint64_t ranks[] = { 0, 1 };
    CHECK( OTF2_GlobalDefWriter_WriteGroup( g, 2, 1, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_PTHREAD,
                                            OTF2_GROUP_FLAG_NONE, 2, ranks ) );
    static uint64_t many[ 100000 ];
    for ( int i = 0; i < 100000; i++ )
    {
        many[ i ] = i;
    }
    CHECK( OTF2_GlobalDefWriter_WriteGroup( g, 3, 1, OTF2_GROUP_TYPE_LOCATIONS, OTF2_PARADIGM_NONE,
                                            OTF2_GROUP_FLAG_NONE, 100000, many ) );
    CHECK( OTF2_GlobalDefWriter_WriteGroup( g, 4, 1, OTF2_GROUP_TYPE_REGIONS, OTF2_PARADIGM_COMPILER,
                                            OTF2_GROUP_FLAG_NONE, 1, regions ) );
    CHECK( OTF2_GlobalDefWriter_WriteGroup( g, 5, 1, OTF2_GROUP_TYPE_LOCATIONS, OTF2_PARADIGM_UNKNOWN,
                                            OTF2_GROUP_FLAG_NONE, 1, locations ) );
    CHECK( OTF2_GlobalDefWriter_WriteComm( g, 0, 1, 2, OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE ) );
    CHECK( OTF2_Archive_CloseGlobalDefWriter( archive, g ) );
}

int
main( int argc, char** argv )
{
    OTF2_Archive* archive = OTF2_Archive_Open( argv[ 1 ], "traces", OTF2_FILEMODE_WRITE, 256 * 1024, 4 * 1024 * 1024,
                                               OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE );
    CHECK( OTF2_Archive_SetFlushCallbacks( archive, &flush, NULL ) );
    CHECK( OTF2_Archive_SetSerialCollectiveCallbacks( archive ) );
    CHECK( OTF2_Archive_SetMachineName( archive, "box" ) );
    CHECK( OTF2_Archive_SetDescription( archive, "a description" ) );
    CHECK( OTF2_Archive_SetCreator( archive, "a program" ) );
    events( archive );
    local_definitions( archive );
    definitions( archive );
    CHECK( OTF2_Archive_Close( archive ) );
    return 0;
}
